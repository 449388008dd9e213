"""JUDGED: every answer of a probe with its evaluation, from the frames that RESULTS are made of.

Pages with questions and answers, `kgprobe trace` and `kgprobe compare` read it and judge nothing.
"""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.tables.answers import SUBJECT, Probe

#: every right answer of an item counts; the best ranked one is used
ANY = "any"
#: gold matchings of the numbers in RESULTS without a `gold`
PLAIN = (ANY, "own")


def frame(paper: str, judged: Iterable[tuple[Probe, pl.DataFrame]]) -> pl.DataFrame:
    """Build the JUDGED frame of a paper; missing columns are "", or null if nullable."""
    parts = [pl.DataFrame(schema=dict(schema.JUDGED.columns))]
    for probe, answers in judged:
        lacking = schema.JUDGED.columns.keys() - set(answers.columns)
        values = {name: None if name in schema.JUDGED.nullable else "" for name in lacking}
        values |= {"paper": paper, **probe.dimensions}
        rows = answers.with_columns(pl.lit(value).alias(name) for name, value in values.items())
        parts.append(schema.cast_columns(rows, schema.JUDGED))
    return pl.concat(parts)


def with_items(answers: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Add the group, relation and subject of their ITEMS to answers."""
    known = items.select("item", "group", "relation", subject=SUBJECT)
    return answers.drop("relation", "subject", strict=False).join(known, on="item")


def with_options(
    answers: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame
) -> pl.DataFrame:
    """Add also the number of options, and the label of the top-ranked one (`winner`) if known."""
    sets = items.select("item", set="candidates")
    sizes = candidates.group_by("set").agg(options=pl.len())
    rows = with_items(answers, items).drop("options", strict=False)
    rows = rows.join(sets, on="item").join(sizes, on="set")
    if "winner" not in rows.columns:
        return rows
    labels = candidates.select("set", winner="index", answer="label")
    return rows.join(labels, on=["set", "winner"], how="left")


def of_scores(answers: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Convert scored options to JUDGED; `answers`: from `answers.judge`."""
    best = pl.col("above").cast(pl.Int64) + 1
    ranks = {"rank_low": best, "rank_high": best + pl.col("tied")}
    return with_options(answers.with_columns(**ranks, matching=pl.lit(ANY)), items, candidates)


def read(paths: Iterable[str | Path]) -> pl.DataFrame:
    """Read JUDGED of several papers."""
    empty = pl.DataFrame(schema=dict(schema.JUDGED.columns))
    return pl.concat([empty, *(schema.read(path, schema.JUDGED) for path in paths)])


def of_first(judged: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of each probe, item and scoring mode under its first template and
    configuration: multiple masks and means before others; the widest gold matching printed for the
    probe (every right answer counts)."""
    key = ["benchmark", "model", "prompt", "method", "item", "scoring", "premise"]
    widths = {"set": 0, ANY: 0, "own": 1}
    width = pl.col("matching").replace_strict(widths, default=2, return_dtype=pl.Int32)
    means = pl.col("pooling").is_in(["", "mean", "answer_mean"])
    order = [width, ~means, pl.col("template").str.len_chars()]
    names = ["template", "masks", "pooling", "loss", "seed", "scheme", "draw"]
    rows = judged.sort(*order, *names)
    return rows.unique(key, keep="first", maintain_order=True)
