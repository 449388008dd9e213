"""What needs no model: the most frequent objects of a relation, and a random one (section 4.3)."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.ranking import hit_at
from kgprobe.tables.attributes_alpha import KS, POOLINGS

MAJORITY, RANDOM, METHOD = "most frequent object", "random object", "baseline"
TWO_UP = "P279/P279"


class HasExamples(Protocol):
    """A benchmark, as far as it is needed here."""

    @property
    def examples(self) -> pl.DataFrame: ...


def frequencies(
    edges: pl.DataFrame, literals: pl.DataFrame, benchmarks: Iterable[HasExamples]
) -> pl.DataFrame:
    """(predicate, object, best, worst, objects): rank of every object of the relations asked.

    Rank by number of statements in the whole graph, ties as ranges; `objects`: distinct objects of
    the relation. The inferred relation of hierarchy counts its two-step paths.
    """
    asked = {p for b in benchmarks for p in b.examples["predicate"].unique()}
    numbers = [int(name[1:]) for name in asked if name != TWO_UP]
    own = edges.filter(pl.col("p").is_in(numbers)).group_by("p", "o").len()
    values = literals.filter(pl.col("p").is_in(numbers)).group_by("p", "value").len()
    found = [
        own.select(
            pl.format("P{}", "p").alias("predicate"), pl.format("Q{}", "o").alias("object"), "len"
        ),
        values.select(
            pl.format("P{}", "p").alias("predicate"), pl.col("value").alias("object"), "len"
        ),
    ]
    if TWO_UP in asked:
        steps = edges.filter(pl.col("p") == 279).select("s", "o")
        twice = steps.rename({"o": "m"}).join(steps.rename({"s": "m", "o": "z"}), on="m")
        twice = twice.filter(pl.col("s") != pl.col("z")).group_by("z").len()
        found.append(
            twice.select(
                pl.lit(TWO_UP).alias("predicate"), pl.format("Q{}", "z").alias("object"), "len"
            )
        )
    counts = pl.concat(found)
    over = pl.col("len").rank("min", descending=True).over("predicate").cast(pl.Int64)
    level = pl.len().over("predicate", "len").cast(pl.Int64)
    return counts.select(
        "predicate",
        "object",
        over.alias("best"),
        (over + level - 1).alias("worst"),
        pl.len().over("predicate").cast(pl.Int64).alias("objects"),
    )


def alphas(examples: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """ALPHAS of both baselines for the triples of EXAMPLES.

    Majority: the own object, or any gold that has a label (a model can say no other), is among the
    k most frequent objects; ties with their expectation. Random: k of the relation's objects at
    random. There is no prompt: every pooling is the same. An object that the relation never has
    (asymmetry's reversal) is never right.
    """
    named = pl.col("gold_labels").list.eval(pl.element().is_not_null())
    rows = examples.select(
        "benchmark", "example", "pattern", "position", "predicate", "object", "golds",
        named=named, right=named.list.sum().cast(pl.Int64),
    )  # fmt: skip
    objects = counted.group_by("predicate").agg(pl.col("objects").first())
    rows = rows.join(objects, on="predicate", how="left").with_columns(
        pl.col("objects").fill_null(1)
    )
    ranks = counted.select("predicate", "object", "best", "worst")
    own = rows.with_columns(right=pl.lit(1, dtype=pl.Int64))
    own = own.join(ranks, on=["predicate", "object"], how="left")
    every = rows.with_columns(object=pl.col("golds")).explode("object", "named").filter("named")
    every = every.join(ranks, on=["predicate", "object"], how="left")
    key = ["benchmark", "example", "pattern", "position"]
    every = every.sort("best", nulls_last=True).group_by(key).agg(pl.all().first())
    parts = []
    for gold, frame in (("own", own), ("set", every)):
        known = frame["best"].is_not_null().to_numpy()
        best, worst = (frame[c].fill_null(1 << 40).to_numpy() for c in ("best", "worst"))
        total = frame["objects"].to_numpy()
        right = frame["right"].to_numpy()
        for k in KS:
            drawn = _drawn(right, total, k)
            for model, value in ((MAJORITY, hit_at(k, best, worst)), (RANDOM, drawn)):
                parts.append(
                    frame.select(key).with_columns(
                        pl.Series("alpha", np.where(known, value, 0.0)),
                        model=pl.lit(model),
                        method=pl.lit(METHOD),
                        k=pl.lit(k, dtype=pl.Int32),
                        kind=pl.lit("exact"),
                        gold=pl.lit(gold),
                    )
                )
    poolings = pl.DataFrame({"pooling": list(POOLINGS)})
    return pl.concat(parts).join(poolings, how="cross")


def _drawn(right: NDArray[np.int64], total: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Probability that k of `total` objects, without replacement, hold one of `right`."""
    wrong = np.maximum(total - right, 0)
    missed = np.ones(len(total))
    for i in range(k):
        missed *= np.maximum(wrong - i, 0) / np.maximum(total - i, 1)
    return 1.0 - missed
