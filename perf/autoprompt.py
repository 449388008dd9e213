"""One iteration of the trigger search at BERT-base shape against literal loops, in one process.

    python -m perf.autoprompt [batch]

Facts with subjects of 2 to 9 tokens and five triggers, k = 10, one batch for the gradient and one
for the candidates, random weights. Two peers do the same iteration on the same examples:

    literal   one prompt at a time, logits at all positions, gradients of all parameters, k + 1
              forward passes per example (the loop of the fidelity tests)
    batched   the released loop: k + 1 passes over padded batches, else as above

All three must find the same candidates, scores and winner, or no speed is printed. One thread, CPU
seconds, median of interleaved repeats.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from kgprobe.probes.models.batching import padded
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.search.scores import Problem, Scorer, problem, top
from kgprobe.probes.prompts.search.settings import settings_for
from kgprobe.templates import Template
from perf.cloze import base_model

TRIGGERS, CANDIDATES, BATCH, REPEATS, TARGET = 5, 10, 12, 3, 3.0
#: sums over a batch of log-probabilities in float32, from passes of other shapes
TOLERANCE = 1e-3


def facts(rng: np.random.Generator, count: int) -> list[tuple[dict[str, str], str]]:
    """Subjects of 2 to 9 words and gold words."""
    return [
        (
            {"sub": " ".join(f"w{n}" for n in rng.integers(900, 9000, size=rng.integers(2, 10)))},
            f"w{rng.integers(9000, 9100)}",
        )
        for _ in range(count)
    ]


def ours(scorer: Scorer, numbers: Any, trigger: list[int], place: int) -> tuple[Any, Any]:
    """(candidates, sums of the candidates and the current trigger)."""
    first, second = numbers
    gradient = scorer.gradient(first, np.full(len(first), 1 / len(first)), trigger)
    kept = np.ones(len(scorer.embedding), dtype=bool)
    tokens = top(scorer.candidate_scores(gradient[place], kept), CANDIDATES)
    asked = [swapped(trigger, place, int(t)) for t in tokens] + [trigger]
    return tokens, scorer.values("train", second, asked, "likelihood").sum(1)


def literal(
    loaded: Loaded, known: Problem, numbers: Any, trigger: list[int], place: int, step: int
) -> tuple[Any, Any]:
    """The same with `step` prompts per pass: 1, or the whole batch."""
    first, second = numbers
    loaded.model.requires_grad_(True)
    kept: list[Any] = []
    embedding = loaded.model.get_input_embeddings()
    handle = embedding.register_forward_hook(
        lambda module, given, output: (output.retain_grad(), kept.append(output))[0]
    )
    total = torch.zeros(TRIGGERS, embedding.weight.shape[1], dtype=torch.float64)
    for start in range(0, len(first), step):
        chunk = first[start : start + step]
        loaded.model.zero_grad()
        kept.clear()
        loss = -gold(loaded, known, chunk, trigger).sum()
        loss.backward()
        at = known.train.encoded.triggers[chunk]
        total += kept[0].grad[np.arange(len(chunk))[:, None], at].double().sum(0) / len(first)
    handle.remove()
    loaded.model.zero_grad()
    loaded.model.requires_grad_(False)
    scores = (embedding.weight @ -total[place].to(embedding.weight.dtype)).double().numpy()
    tokens = np.lexsort((np.arange(len(scores)), -scores))[:CANDIDATES]
    asked = [swapped(trigger, place, int(t)) for t in tokens] + [trigger]
    sums = np.zeros(len(asked))
    with torch.no_grad():
        for number, own in enumerate(asked):
            for start in range(0, len(second), step):
                found = gold(loaded, known, second[start : start + step], own)
                sums[number] += float(found.double().sum())
    return tokens, sums


def gold(loaded: Loaded, known: Problem, chunk: Any, trigger: list[int]) -> Any:
    """Log-probability of the gold word of each example, logits of all positions."""
    filled = known.train.encoded.filled(trigger)
    ids, mask = padded([filled[i] for i in chunk], 0, loaded.device)
    logits = loaded.model(ids, attention_mask=mask).logits
    at = torch.from_numpy(known.train.encoded.places[chunk])
    found = logits.log_softmax(-1)[torch.arange(len(chunk)), at]
    right = torch.from_numpy(known.labels[known.train.right[chunk]])
    return found.gather(1, right)[:, 0]


def swapped(trigger: list[int], place: int, token: int) -> list[int]:
    """Return the trigger with another token at one position."""
    return [*trigger[:place], token, *trigger[place + 1 :]]


def timed(call: Callable[[], tuple[Any, Any]]) -> tuple[float, tuple[Any, Any]]:
    """(CPU seconds, result)."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def main(batch: int) -> list[dict[str, object]]:
    """Measure, interleaved, and return the rows."""
    torch.set_num_threads(1)
    loaded, rng = base_model(), np.random.default_rng(0)
    template = Template.parse(f"{{sub}} [T]x{TRIGGERS} [P] .", "masked")
    own = settings_for("released", "facts", "masked")
    examples = facts(rng, 2 * batch)
    known = problem(loaded, template, examples, examples[:1], own)
    scorer = Scorer(loaded, known)
    order = rng.permutation(len(known.train))
    numbers, trigger = (order[:batch], order[batch:]), [3, 700, 3, 4000, 3]
    calls: dict[str, Callable[[], tuple[Any, Any]]] = {
        "ours": lambda: ours(scorer, numbers, trigger, 1),
        "literal": lambda: literal(loaded, known, numbers, trigger, 1, 1),
        "batched": lambda: literal(loaded, known, numbers, trigger, 1, batch),
    }
    ours(scorer, (order[:2], order[2:4]), trigger, 1)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    found = {}
    for repeat in range(REPEATS):
        for name, call in calls.items():
            if name != "batched" or repeat == 0:
                spent, found[name] = timed(call)
                seconds[name].append(spent)
    apart = max(check(found["ours"], found[name]) for name in ("literal", "batched"))
    print(f"CPU s per iteration: {seconds}; load {os.getloadavg()}")
    fast = statistics.median(seconds["ours"])
    rows: list[dict[str, object]] = []
    for name, what in (("literal", "one prompt at a time"), ("batched", "padded batches")):
        slow = statistics.median(seconds[name])
        rows.append(
            {
                "name": f"trigger search, an iteration at BERT-base shape, {batch} + {batch} facts,"
                f" k = {CANDIDATES}; peer: literal loop, {what} (same candidates, sums within "
                f"{apart:.1g})",
                "ours": round(fast, 2),
                "peer": round(slow, 2),
                "unit": "CPU s",
                "ratio": round(slow / fast, 2),
                "target": TARGET if name == "literal" else "",
            }
        )
    return rows


def check(own: tuple[Any, Any], other: tuple[Any, Any]) -> float:
    """Return the largest difference of the sums; end the run if candidates or winner differ."""
    apart = float(np.abs(own[1] - other[1]).max())
    if own[0].tolist() != other[0].tolist() or apart > TOLERANCE:
        raise SystemExit(f"candidates {own[0]} and {other[0]}, sums differ by {apart:.2g}")
    if int(own[1][:-1].argmax()) != int(other[1][:-1].argmax()):
        raise SystemExit("another candidate wins: no speed is printed")
    return apart


if __name__ == "__main__":
    result = main(int(sys.argv[1]) if len(sys.argv) > 1 else BATCH)
    Path("results/perf").mkdir(parents=True, exist_ok=True)
    Path("results/perf/autoprompt.json").write_text(json.dumps(result, indent=1))
