"""Metrics of prompts: P@1, P@10, MRR, any-sentence accuracy; macro over relations and micro.

    OUTCOMES + EXAMPLES  --join_outcomes-->  rows  --rank_outcomes | sentences-->  a value per unit

All values except numbers of sentences are in 0 .. 1. Ties are broken at random and every value is
its expectation. Source: Shin et al. 2020, sections 5 and 6; docs/papers/autoprompt.md, Tasks.
"""

import numpy as np
import polars as pl

from kgprobe.metrics.ranking import hit_at, reciprocal_rank

#: reciprocal ranks beyond this are 0 in the released evaluation
RELEASED_CUT = 10_000
ABSENT = ("drop", "wrong")
_KEY = ["group", "split", "example"]


def join_outcomes(
    examples: pl.DataFrame, outcomes: pl.DataFrame, split: str = "test"
) -> pl.DataFrame:
    """Join the outcomes of `split` with their examples, and add their `subject`: the label, or the
    fact in tasks without subjects.

    Raises ValueError for outcomes whose examples are missing, and if there are no outcomes.
    """
    wanted = outcomes.filter(pl.col("split") == split)
    rows = wanted.join(examples, on=_KEY, how="left", validate="m:1")
    lost = rows.filter(pl.col("label").is_null())
    if lost.height:
        first = lost.select(_KEY).row(0, named=True)
        raise ValueError(f"{lost.height} outcomes have no example, first {first}")
    if not rows.height:
        raise ValueError(f"no outcomes of split {split!r}")
    subject = pl.coalesce(pl.col("fields").str.json_path_match("$.sub"), "fact")
    return rows.with_columns(subject=subject).sort("prompt", *_KEY)


def rank_outcomes(
    rows: pl.DataFrame, filtered: bool = False, cut: int | None = None, absent: str = "drop"
) -> pl.DataFrame:
    """Return prompt, group, unit (the example), subject and p1, p10, mrr of every row of
    `join_outcomes`.

    `filtered` uses the ranks that ignore other right answers; reciprocal ranks beyond `cut` are 0;
    golds without a rank (not one token, not in the vocabulary) are dropped or, with `absent`
    "wrong", count as never found.
    """
    if absent not in ABSENT:
        raise ValueError(f"absent {absent!r}; valid: {', '.join(ABSENT)}")
    first, last = ("filtered_best", "filtered_worst") if filtered else ("best", "worst")
    if absent == "drop":
        rows = rows.filter(pl.col(first).is_not_null())
    known = rows[first].is_not_null().to_numpy()
    best = rows[first].fill_null(1).to_numpy().astype(np.int64)
    worst = rows[last].fill_null(1).to_numpy().astype(np.int64)
    columns = {"p1": hit_at(1, best, worst), "p10": hit_at(10, best, worst)}
    columns["mrr"] = reciprocal_rank(best, worst, cut)
    return rows.select(
        "prompt",
        "group",
        pl.col("example").alias("unit"),
        "subject",
        *(pl.Series(name, np.where(known, values, 0.0)) for name, values in columns.items()),
    )


def cut_of(mode: str) -> int | None:
    """Return the rank beyond which reciprocal ranks are 0 in a search mode; None: no limit."""
    return RELEASED_CUT if mode == "released" else None


def right(rows: pl.DataFrame) -> pl.Series:
    """Return whether each row's answer is its label or, ignoring case, a surface form.

    The rule of relation extraction: the model may name the object as its sentence does.
    """
    answer = pl.col("answer").str.to_lowercase()
    surfaces = pl.col("surfaces").list.eval(pl.element().str.to_lowercase())
    equal = (pl.col("answer") == pl.col("label")) | surfaces.list.contains(answer)
    return rows.select(equal.alias("right"))["right"]


def sentences(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (per fact, per sentence) values of relation extraction.

    Per fact: any_sentence (right for any of its sentences) and sentences (their number); per
    sentence: sentence. The first rewards facts with many sentences, so print all three.
    """
    each = rows.with_columns(right(rows).cast(pl.Float64).alias("sentence"))
    facts = (
        each.group_by("prompt", "group", "fact")
        .agg(
            pl.col("subject").first(),
            pl.col("sentence").max().alias("any_sentence"),
            pl.len().cast(pl.Float64).alias("sentences"),
        )
        .rename({"fact": "unit"})
        .sort("prompt", "group", "unit")
    )
    unit = pl.col("example").alias("unit")
    return facts, each.select("prompt", "group", unit, "subject", "sentence")
