"""The answers that need no model: the commonest training label, and the best constant answer.

    majority   options by their count among the training facts of the group
    constant   the same by the test facts themselves: an oracle, and no constant answer beats it

A trigger search partly learns the distribution of labels, so both stand beside every searched
prompt. LAMA, macro P@1: 17.3 and 22.0; the 22.0 quoted as "majority" in the literature is the
second.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from kgprobe.probes.ranked import framed, outcomes, part

#: the splits that a constant answer is judged on
JUDGED = ("dev", "test")


def majority(
    examples: pl.DataFrame, options: Sequence[str], splits: Sequence[str] = JUDGED
) -> pl.DataFrame:
    """OUTCOMES of the training majority, per group (relation; "" where a task has none)."""
    return _constant("majority", examples, options, splits, "train")


def constant(
    examples: pl.DataFrame, options: Sequence[str], splits: Sequence[str] = JUDGED
) -> pl.DataFrame:
    """OUTCOMES of the best constant answer: counted on the very split that it is judged on."""
    frames = [_constant("constant", examples, options, [split], split) for split in splits]
    return pl.concat(frames)


def counts(examples: pl.DataFrame, options: Sequence[str]) -> np.ndarray:
    """How many facts have each option as their label; a fact's sentences count once."""
    facts = examples.unique(["fact", "label"])
    by_label = dict(facts["label"].value_counts().iter_rows())
    return np.array([by_label.get(word, 0) for word in options], dtype=np.float64)


def _constant(
    prompt: str,
    examples: pl.DataFrame,
    options: Sequence[str],
    splits: Sequence[str],
    counted: str,
) -> pl.DataFrame:
    source = part(examples, counted).partition_by("group", as_dict=True)
    frames = []
    for (group,), rows in sorted(
        part(examples, *splits).partition_by("group", as_dict=True).items()
    ):
        if (group,) not in source:
            raise ValueError(f"{prompt}: group {group!r} has no {counted} examples to count")
        count = counts(source[(group,)], options)
        with np.errstate(divide="ignore"):
            logs = np.log(count / max(count.sum(), 1.0))
        shape = (rows.height, len(options))
        frames.append(
            outcomes(
                prompt, rows, options, np.broadcast_to(count, shape), np.broadcast_to(logs, shape)
            )
        )
    return pl.concat(frames) if frames else framed([])
