"""Small frames of prompt tasks: examples and outcomes with known numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from kgprobe.schema import OUTCOMES
from kgprobe.tables.answers import Probe
from kgprobe.tables.autoprompt.numbers import Answers
from kgprobe.tables.results import Number
from tests.unit import prompt_examples


def examples(
    groups: Mapping[str, Mapping[str, int]],
    labels: Sequence[str] = ("Paris",),
    flags: Mapping[str, Sequence[str]] | None = None,
) -> pl.DataFrame:
    """Return EXAMPLES by group -> split -> count; example i has labels[i % len(labels)]."""
    return prompt_examples.examples(
        {
            "group": group, "split": split, "example": f"{split}{i}", "fact": f"{split}{i}",
            "fields": {"sub": f"S{i}"}, "label": labels[i % len(labels)],
            "flags": list((flags or {}).get(f"{split}{i}", [])),
        }
        for group, splits in groups.items()
        for split, n in splits.items()
        for i in range(n)
    )  # fmt: skip


def outcomes(
    frame: pl.DataFrame, ranks: Mapping[str, Sequence[int]], prompt: str = "searched"
) -> pl.DataFrame:
    """Return OUTCOMES of the dev and test examples: example i of a group and split gets rank i."""
    rows = []
    for row in frame.filter(pl.col("split") != "train").iter_rows(named=True):
        number = int(row["example"].removeprefix(row["split"]))
        rank = ranks[row["group"]][number % len(ranks[row["group"]])]
        ends = dict.fromkeys(("best", "worst", "filtered_best", "filtered_worst"), rank)
        keys = {name: row[name] for name in ("group", "split", "example")}
        answer = row["label"] if rank == 1 else "Rome"
        more = {"options": 20, "answer": answer, "logprob": -float(rank)}
        rows.append({"prompt": prompt, **keys, **ends, **more})
    return pl.DataFrame(rows, schema=dict(OUTCOMES.columns))


def answered(
    benchmark: str,
    prompt: str,
    frame: pl.DataFrame,
    found: pl.DataFrame | Mapping[str, Sequence[int]],
    model: str = "bert-base-cased",
    source: str = "hub:x",
) -> Answers:
    """Return the answers of a masked model; `found` is OUTCOMES, or the ranks for `outcomes`."""
    if not isinstance(found, pl.DataFrame):
        found = outcomes(frame, found, prompt)
    probe = Probe(benchmark, prompt, "predict", model, "masked", source=source)
    return Answers(probe, found, frame)


def the(numbers: Iterable[Number], metric: str, **dimensions: Any) -> Number:
    """Return the only number of these dimensions; others are empty, but any probe matches."""
    wanted = {"group": "", "slice": "", "setting": {}, "metric": metric, **dimensions}
    (number,) = [n for n in numbers if all(getattr(n, d) == v for d, v in wanted.items())]
    return number
