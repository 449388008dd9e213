"""Outcomes of each example from scores of all answer options, also without a model:

    majority   options by their count among the training facts of the group
    constant   options by their count among the test facts: an oracle for constant answers

A trigger search partly learns the distribution of labels, so both are reported with every searched
prompt. LAMA, macro P@1: 17.3 and 22.0; the 22.0 quoted as "majority" in the literature is the
second.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, Ragged
from kgprobe.probes.scoring.fill.options import AnswerOptions, AnswerRanks, against, ranks_of
from kgprobe.schema import OUTCOMES

Floats = NDArray[np.float64]


def outcomes(
    prompt: str,
    examples: pl.DataFrame,
    options: Sequence[str] | AnswerOptions,
    scores: Floats,
    logprobs: Floats | None = None,
) -> pl.DataFrame:
    """Return OUTCOMES of `prompt` on `examples` (EXAMPLES), given `scores` (n x options).

    Larger scores are better; the answer is the first option with the largest score. `logprobs` has
    the shape of `scores` (default: the scores themselves); a value that is not finite becomes null.
    Raises ValueError for NaN.
    """
    known = answer_options(options)
    if (wrong := np.isnan(scores).any(1)).any():
        name = examples["example"][int(wrong.argmax())]
        raise ValueError(f"{prompt}: NaN among the scores of example {name!r}")
    logs = scores if logprobs is None else logprobs
    golds = known.columns(examples["label"].to_list())
    others = others_of(examples["others"], known)
    table = torch.from_numpy(np.array(scores))
    of_golds = logs[np.arange(len(logs)), np.maximum(golds, 0)]
    ranks = ranks_of(against(table, golds, others)[0].numpy(), of_golds, golds)
    frame = frame_ranks(examples, ranks, known).with_columns(
        pl.when(pl.col("logprob").is_finite()).then("logprob"), prompt=pl.lit(prompt)
    )
    return frame.select(list(OUTCOMES.columns))


def answer_options(options: Sequence[str] | AnswerOptions) -> AnswerOptions:
    """Convert to AnswerOptions; plain words or classes are options without aliases."""
    if isinstance(options, AnswerOptions):
        return options
    return AnswerOptions(tuple(options), {word: i for i, word in enumerate(options)}, ())


def class_numbers(labels: Sequence[str], classes: Sequence[str]) -> Ints:
    """Return the index of every label; raises ValueError for labels that are not a class."""
    known = answer_options(classes)
    if unknown := sorted(set(labels) - known.column.keys()):
        raise ValueError(f"labels {unknown} are none of the classes {[*classes]}")
    return known.columns(labels)


def accuracy(scores: NDArray[Any], gold: Ints) -> float:
    """Return the proportion of rows whose first largest score is the gold's."""
    return float((scores.argmax(axis=1) == gold).mean())


def others_of(others: pl.Series, options: AnswerOptions) -> Ints:
    """Return columns of the other correct answers: examples x maximum count, padded with -1."""
    rows = [np.unique(options.columns(words or ())) for words in others.to_list()]
    return Ragged.of([row[row >= 0] for row in rows]).matrix(-1)


def frame_ranks(rows: pl.DataFrame, ranks: AnswerRanks, options: AnswerOptions) -> pl.DataFrame:
    """Return OUTCOMES of EXAMPLES without the prompt's name."""
    ranges = ("best", "worst", "filtered_best", "filtered_worst")
    # if several words share one token, name a correct answer by its gold
    right = pl.Series(ranks["top"] == options.columns(rows["label"].to_list()))
    answer = pl.Series(options.names, dtype=pl.String).gather(ranks["top"])
    return rows.select("group", "split", "example").with_columns(
        *(pl.Series(name, ranks[name]).replace(0, None).cast(pl.Int32) for name in ranges),
        options=pl.lit(len(options), dtype=pl.Int32),
        answer=pl.when(right).then(rows["label"]).otherwise(answer),
        logprob=pl.when(pl.Series(ranks["best"] > 0)).then(pl.Series(ranks["logprob"])),
    )


def part(examples: pl.DataFrame, *splits: str) -> pl.DataFrame:
    """Return the examples of these splits, sorted by group, split and example.

    Raises ValueError if there are none.
    """
    rows = examples.filter(pl.col("split").is_in(splits)).sort("group", "split", "example")
    if not rows.height:
        raise ValueError(
            f"no examples of split {' or '.join(splits)}; there are "
            f"{sorted(examples['split'].unique().to_list())}"
        )
    return rows


def namer(examples: pl.DataFrame) -> Callable[[int], str]:
    """Return a function that describes an example by row number, for messages."""
    keys = examples.select("group", "split", "example").rows()
    return lambda row: "{} {} example {}".format(*keys[row]).strip()


def fields(examples: pl.DataFrame) -> list[dict[str, str]]:
    """Return the decoded fields of every example."""
    return [dict(json.loads(text)) for text in examples["fields"]]


#: the splits that a constant answer is evaluated on
JUDGED = ("dev", "test")


def majority(
    examples: pl.DataFrame, options: Sequence[str] | AnswerOptions, splits: Sequence[str] = JUDGED
) -> pl.DataFrame:
    """Return OUTCOMES of the training majority per group (relation; "" if a task has none)."""
    return _constant("majority", examples, options, splits, "train")


def constant(
    examples: pl.DataFrame, options: Sequence[str] | AnswerOptions, splits: Sequence[str] = JUDGED
) -> pl.DataFrame:
    """Return OUTCOMES of the best constant answer, counted on the split that it is evaluated on."""
    frames = [_constant("constant", examples, options, [split], split) for split in splits]
    return pl.concat(frames)


def counts(examples: pl.DataFrame, options: AnswerOptions) -> np.ndarray:
    """Count the facts with each option as label; a fact with several sentences counts once."""
    columns = options.columns(examples.unique(["fact", "label"])["label"].to_list())
    return np.bincount(columns[columns >= 0], minlength=len(options)).astype(np.float64)


def _constant(
    prompt: str,
    examples: pl.DataFrame,
    options: Sequence[str] | AnswerOptions,
    splits: Sequence[str],
    counted: str,
) -> pl.DataFrame:
    known = answer_options(options)
    source = part(examples, counted).partition_by("group", as_dict=True)
    frames = []
    for (group,), rows in sorted(
        part(examples, *splits).partition_by("group", as_dict=True).items()
    ):
        if (group,) not in source:
            raise ValueError(f"{prompt}: group {group!r} has no {counted} examples to count")
        count = counts(source[(group,)], known)
        with np.errstate(divide="ignore"):
            logs = np.log(count / max(count.sum(), 1.0))
        shape = (rows.height, len(known))
        frames.append(
            outcomes(
                prompt, rows, known, np.broadcast_to(count, shape), np.broadcast_to(logs, shape)
            )
        )
    return pl.concat(frames)
