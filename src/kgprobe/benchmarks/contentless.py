"""The questions of a benchmark with a word that says nothing in place of the subject.

What is left to answer by is what an option has by itself under a template. All items of a relation
have it in common (and of a year, where one is asked about), so every option is asked once for each
template and word, not once for each item. The words stand for content as those of Zhao et al. 2021
(Calibrate Before Use, section 4) do, and the score of an option is its mean over them.
"""

from collections.abc import Sequence

import polars as pl

from kgprobe.contracts import CANDIDATES, ITEMS
from kgprobe.metrics.sums import ordered_mean
from kgprobe.templates import relation_in

_SAME = ["relation", "context"]


def questions(
    items: pl.DataFrame, candidates: pl.DataFrame, words: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """ITEMS, one for each word and relation (and year), and CANDIDATES: every label that is an
    option there, once. Nothing is right, so `answers` are empty."""
    labels = _labels(items, candidates)
    asked = labels.select("set", *_SAME).unique().sort("set")
    made = [
        {
            "item": f"{name}/{word}",
            "group": relation,
            "role": "contentless",
            "relation": relation,
            "subject": word,
            "subject_id": "",
            "context": year,
            "candidates": name,
            "answers": [],
            "row": row,
            "meta": "{}",
        }
        for name, relation, year in asked.rows()
        for row, word in enumerate(words)
    ]
    options = labels.with_columns(id=pl.col("label")).select(list(CANDIDATES.columns))
    return pl.DataFrame(made, schema=dict(ITEMS.columns)), options


def answers(
    scores: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame, words: Sequence[str]
) -> pl.DataFrame:
    """item, template, candidate, sum of every option of ITEMS: what SCORES of `questions` say of
    its label, mean over the words. Raises ValueError where they do not hold these questions."""
    asked, options = questions(items, candidates, words)
    named = asked.select("item", *_SAME, set="candidates").join(
        options.select("set", "label", candidate="index"), on="set"
    )
    told = scores.select("item", "template", "candidate", "sum").join(
        named, on=["item", "candidate"]
    )
    if told.height < scores.height or told.select("item", "candidate").n_unique() < named.height:
        raise ValueError(
            f"scores without the subject: {scores['item'].n_unique()} questions with their "
            f"options, the benchmark has {asked.height}; score it again"
        )
    means = told.group_by(*_SAME, "label", "template").agg(ordered_mean("sum"))
    real = items.select("item", *_SAME, set="candidates").join(
        candidates.select("set", "label", candidate="index"), on="set"
    )
    spread = real.join(means, on=[*_SAME, "label"])
    return spread.select("item", "template", "candidate", "sum").sort(
        "item", "template", "candidate"
    )


def _labels(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """relation, context, set (a name for both), label and its index, in order of labels."""
    own = items.select(*_SAME, set="candidates").unique()
    found = own.join(candidates.select("set", "label"), on="set").select(*_SAME, "label").unique()
    names = [relation_in(*row) for row in found.select(_SAME).rows()]
    named = found.with_columns(set=pl.Series(names, dtype=pl.String)).sort("set", "label")
    return named.with_columns(index=pl.int_range(pl.len(), dtype=pl.Int32).over("set"))
