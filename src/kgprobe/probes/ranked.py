"""Outcomes from scores: what an answerer that scores every option makes of each example."""

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.ranking import tie_range
from kgprobe.schema import OUTCOMES

Floats = NDArray[np.float64]


def outcomes(
    prompt: str,
    examples: pl.DataFrame,
    options: Sequence[str],
    scores: Floats,
    logprobs: Floats | None = None,
) -> pl.DataFrame:
    """OUTCOMES of `prompt` on `examples` (EXAMPLES), one row of `scores` (n x options) for each.

    Larger scores are better; the answer is the first option with the largest one. `logprobs` has
    the shape of `scores` (default: the scores themselves); a value that is not finite becomes null.
    Raises ValueError for repeated options, for shapes that do not fit, and for NaN.
    """
    if len(set(options)) != len(options) or not options:
        raise ValueError(f"{prompt}: {len(options)} options, each must be named once")
    if scores.shape != (examples.height, len(options)):
        raise ValueError(
            f"{prompt}: scores of shape {scores.shape} for {examples.height} examples and "
            f"{len(options)} options"
        )
    number = {word: i for i, word in enumerate(options)}
    logs = scores if logprobs is None else logprobs
    rows = [
        _row(prompt, row, number, options, scores[i], logs[i])
        for i, row in enumerate(examples.iter_rows(named=True))
    ]
    return framed(rows)


def framed(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Rows as a frame with the columns of OUTCOMES."""
    return pl.DataFrame(rows, schema=dict(OUTCOMES.columns), orient="row")


def _row(
    prompt: str,
    example: Mapping[str, object],
    number: Mapping[str, int],
    options: Sequence[str],
    scores: Floats,
    logs: Floats,
) -> dict[str, object]:
    row: dict[str, object] = {
        **{key: example[key] for key in ("group", "split", "example")},
        "prompt": prompt,
        "best": None,
        "worst": None,
        "filtered_best": None,
        "filtered_worst": None,
        "options": len(options),
        "answer": options[int(np.argmax(scores))],
        "logprob": None,
    }
    if np.isnan(scores).any():
        raise ValueError(f"{prompt}: NaN among the scores of example {example['example']!r}")
    gold = number.get(str(example["label"]))
    if gold is None:
        return row
    row["best"], row["worst"] = tie_range(scores, gold)
    others = [number[o] for o in set(example["others"]) & number.keys()]  # type: ignore[call-overload]
    kept = np.ones(len(options), dtype=bool)
    kept[others] = False
    kept[gold] = True
    row["filtered_best"], row["filtered_worst"] = tie_range(scores[kept], int(kept[:gold].sum()))
    row["logprob"] = float(logs[gold]) if np.isfinite(logs[gold]) else None
    return row


def part(examples: pl.DataFrame, *splits: str) -> pl.DataFrame:
    """The examples of these splits in the order of group, split and example.

    Raises ValueError when there is none.
    """
    rows = examples.filter(pl.col("split").is_in(splits)).sort("group", "split", "example")
    if not rows.height:
        raise ValueError(
            f"no examples of split {' or '.join(splits)}; there are "
            f"{sorted(examples['split'].unique().to_list())}"
        )
    return rows


def namer(examples: pl.DataFrame) -> Callable[[int], str]:
    """What says which of the examples a row is, for messages."""
    keys = examples.select("group", "split", "example").rows()
    return lambda row: "{} {} example {}".format(*keys[row]).strip()


def fields(examples: pl.DataFrame) -> list[dict[str, str]]:
    """The fields of every example, decoded."""
    return [dict(json.loads(text)) for text in examples["fields"]]
