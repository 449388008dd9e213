"""BEAR's questions asked by kgprobe, lm-pub-quiz 0.3.3 and lm-evaluation-harness 0.4.13.

    make peers; python -m perf.peers [questions [FILE]]

SmolLM2-135M with BOS in front, template 0, questions of the released BEAR drawn by seed, every
option of each; processes of their own, one thread, one core, 600 questions in an hour. Rows:
sentences per CPU second around scoring and tokenization, accuracy, and in how many questions
another option is best, each with its reason. With a FILE the questions are written to it, for
`perf.device --questions`, and nothing is asked.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from perf.run import RESULTS
from perf.scoring import CASES, bear, make_model

#: side -> the Python that has its package
SIDES = {
    "ours": sys.executable,
    "peer": sys.executable,
    "harness": str(Path(".peers/bin/python").absolute()),
}
NAMES = {"peer": "lm-pub-quiz 0.3.3", "harness": "lm-evaluation-harness 0.4.13"}
#: log-likelihoods of one sentence in two programs differ by as much from rounding (nats)
ROUNDING = 1e-3


def drawn(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """So many questions of all relations in template 0, with all options; `gold`: its index."""
    meta = json.loads((bear() / "metadata_relations.json").read_text())
    every = [
        (relation, json.loads(line))
        for relation in sorted(meta)
        for line in (bear() / f"{relation}.jsonl").read_text().splitlines()
    ]
    return [
        {
            "relation": relation,
            "subject": row["sub_label"],
            "template": meta[relation]["templates"][0],
            "options": meta[relation]["answer_space_labels"],
            "gold": row["answer_idx"],
        }
        for relation, row in random.Random(seed).sample(every, count)
    ]


def best(questions: list[dict[str, Any]], scores: list[float]) -> list[tuple[int, list[float]]]:
    """The option with the highest score of each question, and the question's scores."""
    found, start = [], 0
    for question in questions:
        own = scores[start : start + len(question["options"])]
        found.append((own.index(max(own)), own))
        start += len(own)
    return found


def reason(ours: tuple[int, list[float]], other: tuple[int, list[float]]) -> str:
    """Why two programs choose different options of one question."""
    (mine, own), (its, scores) = ours, other
    if max(abs(own[i] - scores[i]) for i in (mine, its)) <= ROUNDING:
        return "a tie within rounding"
    return "other log-likelihoods"


def main(count: int) -> list[dict[str, object]]:
    """Ask all three, and compare."""
    questions = drawn(count)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_model(CASES[0], folder / "model")
        case = {"folder": str(folder / "model"), "kind": "causal", "slices": {"all": questions}}
        (folder / "case.json").write_text(json.dumps(case))
        found: dict[str, dict[str, Any]] = {}
        for side, python in SIDES.items():
            result = folder / f"{side}.json"
            command = [python, "-m", "perf._scoring_side", side, folder / "case.json", result]
            environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
            subprocess.run(list(map(str, command)), check=True, env=environment)
            found[side] = json.loads(result.read_text())["slices"]["all"]
            print(f"{side}: {found[side]['cpu']:.0f} CPU seconds", flush=True)
    rate = {side: len(one["scores"]) / one["cpu"] for side, one in found.items()}
    chosen = {side: best(questions, one["scores"]) for side, one in found.items()}
    right = {
        side: sum(index == q["gold"] for (index, _), q in zip(ones, questions, strict=True))
        for side, ones in chosen.items()
    }
    rows: list[dict[str, object]] = []
    for side, name in NAMES.items():
        pairs = zip(chosen["ours"], chosen[side], strict=True)
        reasons = [reason(ours, other) for ours, other in pairs if ours[0] != other[0]]
        apart = max(
            abs(a - b) for a, b in zip(found["ours"]["scores"], found[side]["scores"], strict=True)
        )
        counts = ", ".join(f"{reasons.count(one)} {one}" for one in sorted(set(reasons)))
        for what, unit, ours, peer, ratio in (
            ("speed", "sentences per CPU second", rate["ours"], rate[side],
             rate["ours"] / rate[side]),
            ("accuracy", "%", 100 * right["ours"] / count, 100 * right[side] / count, ""),
            ("another option is best", counts or "questions", len(reasons), "", ""),
            ("largest difference of a log-likelihood", "nats", apart, "", ""),
        ):  # fmt: skip
            rows.append(
                {"name": f"{count} questions of BEAR beside {name}: {what}", "unit": unit,
                 "ours": _rounded(ours), "peer": _rounded(peer), "ratio": _rounded(ratio),
                 "target": ""}
            )  # fmt: skip
    return rows


def _rounded(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(f"{value:.4g}")


if __name__ == "__main__":
    if sys.argv[2:]:
        Path(sys.argv[2]).write_text(json.dumps(drawn(int(sys.argv[1]))), encoding="utf-8")
        raise SystemExit
    made = main(int(sys.argv[1]) if sys.argv[1:] else 60)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "peers.json").write_text(json.dumps(made, indent=1))
    print(json.dumps(made, indent=1))
