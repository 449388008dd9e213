"""One side of a measurement of sentence scoring, in a process of its own (see perf/scoring.py).

    python -m perf._scoring_side <ours|plain|peer|harness> <case.json> <result.json>

The model is loaded and one question answered before the clock starts. CPU seconds are those of the
process, around scoring and tokenization.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

import torch
import transformers

#: A case: model folder, kind, and slices of questions (relation, subject, template, options).
Case = dict[str, Any]
Slice = list[dict[str, Any]]


def peer(case: Case) -> Callable[[Slice], list[float]]:
    """lm-pub-quiz: sums of every option of every question, one question at a time."""
    from lm_pub_quiz import Evaluator

    kind = {"causal": "CLM", "masked": "MLM"}[case["kind"]]
    auto = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}[case["kind"]]
    model = getattr(transformers, auto).from_pretrained(case["folder"], dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(case["folder"])
    evaluator = Evaluator.from_model(model, model_type=kind, tokenizer=tokenizer, device="cpu")

    def run(questions: Slice) -> list[float]:
        found: list[float] = []
        for q in questions:
            found += evaluator.score_answers(
                template=q["template"],
                answers=q["options"],
                subject=q["subject"],
                reduction="sum",
                batch_size=32,
            )
        return found

    return run


def harness(case: Case) -> Callable[[Slice], list[float]]:
    """lm-evaluation-harness: the log-likelihood of every option's sentence after its prefix."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=case["folder"], device="cpu", dtype="float32", batch_size=32)

    def run(questions: Slice) -> list[float]:
        texts = [
            q["template"].replace("[X]", q["subject"]).replace("[Y]", option)
            for q in questions
            for option in q["options"]
        ]
        # a sentence begins with a capital, as the other two write it
        texts = [text[0].upper() + text[1:] for text in texts]
        asked = [Instance("loglikelihood", {}, ("", text), 0) for text in texts]
        return [value for value, _ in model.loglikelihood(asked, disable_tqdm=True)]

    return run


def ours(case: Case, last_layer: str = "scored") -> Callable[[Slice], list[float]]:
    """kgprobe: the same sums, in the same order."""
    from kgprobe.probes.models.load import ModelSpec, load_model
    from kgprobe.probes.scoring.sentence.score import Item, score

    bos = "forced" if case["kind"] == "causal" else "-"
    loaded = load_model(ModelSpec("m", case["kind"], f"folder:{case['folder']}", bos=bos))

    def run(questions: Slice) -> list[float]:
        items = [
            Item(f"{i:06d}", q["relation"], q["subject"], q["relation"])
            for i, q in enumerate(questions)
        ]
        options = {q["relation"]: q["options"] for q in questions}
        templates = {q["relation"]: [(0, q["template"])] for q in questions}
        scores = score(loaded, items, options, templates, last_layer=last_layer)
        rows = zip(scores.columns["item"], scores.columns["candidate"], strict=True)
        order = sorted(range(len(scores.columns["sum"])), key=list(rows).__getitem__)
        return [float(v) for v in scores.columns["sum"][order]]

    return run


SIDES: dict[str, Callable[[Case], Callable[[Slice], list[float]]]] = {
    "peer": peer,
    "harness": harness,
    "ours": ours,
    "plain": lambda case: ours(case, "all"),
}


def peak() -> float:
    """Return the MiB of this process's largest resident set; ru_maxrss would include its
    parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def main(side: str, case_path: str, result_path: str) -> None:
    """Measure one side and write seconds, scores and peak memory."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    case: Case = json.loads(Path(case_path).read_text())
    run = SIDES[side](case)
    first = next(iter(case["slices"].values()))
    run(first[:1])
    result: dict[str, Any] = {"slices": {}}
    for name, questions in case["slices"].items():
        cpu, wall = time.process_time(), time.perf_counter()
        scores = run(questions)
        result["slices"][name] = {
            "cpu": time.process_time() - cpu,
            "wall": time.perf_counter() - wall,
            "scores": scores,
        }
    result["peak"] = peak()
    Path(result_path).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:4])
