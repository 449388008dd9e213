"""Answers without a model: the most frequent training label, and the best constant answer.

    majority   options by their count among the training facts of the group
    constant   options by their count among the test facts: an oracle for constant answers

A trigger search partly learns the distribution of labels, so both are reported with every searched
prompt. LAMA, macro P@1: 17.3 and 22.0; the 22.0 quoted as "majority" in the literature is the
second.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from kgprobe.probes.ranked import answer_options, outcomes, part
from kgprobe.probes.scoring.fill.options import AnswerOptions

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
