"""Script for the peers' environment: `python peers_side.py PEER ARGUMENTS`, JSON on stdout.

Nothing of kgprobe is imported here.
"""

import json
import sys


def lm_eval(folder: str, model: str, tasks: str, more: str = "") -> dict:
    """Return acc and its standard error for comma-separated tasks and groups with their members."""
    import lm_eval as harness
    from lm_eval.tasks import TaskManager

    found = harness.simple_evaluate(
        model="hf", model_args=f"pretrained={model},dtype=float32,max_length=128{more}",
        tasks=tasks.split(","),
        task_manager=TaskManager(include_path=folder, include_defaults=False), device="cpu",
        batch_size=16, bootstrap_iters=100,
    )  # fmt: skip
    scores = {**found.get("groups", {}), **found["results"]}
    return {
        name: {"acc": row["acc,none"], "stderr": row.get("acc_stderr,none")}
        for name, row in scores.items()
    }


def lm_pub_quiz(folder: str, model: str) -> dict:
    """Return accuracy by relation under the first template."""
    from lm_pub_quiz import Dataset, Evaluator

    evaluator = Evaluator.from_model(model, model_type="CLM", device="cpu")
    found = evaluator.evaluate_dataset(Dataset.from_path(folder), template_index=0, batch_size=16)
    scores = found.get_metrics(["accuracy", "support"], accumulate=None)
    return {str(k): {n: float(v) for n, v in row.items()} for k, row in scores.T.to_dict().items()}


if __name__ == "__main__":
    peer, *arguments = sys.argv[1:]
    stdout, sys.stdout = sys.stdout, sys.stderr  # output of a peer is not JSON
    made = globals()[peer](*arguments)
    print(json.dumps(made), file=stdout)
