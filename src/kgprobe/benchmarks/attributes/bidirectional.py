"""Bidirectional: r1 and r2 link the same pair in opposite directions (kg_attributes.md, 3.3)."""

import numpy as np
import polars as pl

from kgprobe.benchmarks.attributes.examples import Shape, Triple, capped, pick, require
from kgprobe.benchmarks.attributes.graph import Graph, packed
from kgprobe.benchmarks.attributes.items import Built, built
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.settings import Bidirectional

SHAPE = Shape(
    "bidirectional",
    ("p1", "p2"),
    "P{}~P{}",
    ("s", "o"),
    (Triple("first", "s", "p1", "o"), Triple("inverse", "o", "p2", "s")),
)
DENOMINATORS = {
    "min": pl.min_horizontal("n1", "n2"),
    "max": pl.max_horizontal("n1", "n2"),
    "first": pl.col("n1"),
    "second": pl.col("n2"),
}
#: edges looked at together; both directions of a pair fall into the same part
PART = 4_000_000


def build(graph: Graph, settings: Settings[Bidirectional]) -> Built:
    """Pairs of entities with two relations in opposite directions.

    The paper says "the same strategy" as for symmetry: of predicate pairs with at least
    `min_triples` in the chosen `denominator`, of which a share of `ratio` or more has its inverse.
    """
    steps = Funnel(SHAPE.benchmark)
    pairs = candidates(graph, settings, steps)
    choose = capped(SHAPE, settings.own.cap, settings)
    picked = pick(SHAPE, pairs, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: Settings[Bidirectional], steps: Funnel) -> pl.DataFrame:
    """(p1, p2, s, o): (s, p1, o) and (o, p2, s) are edges, p1 < p2, thresholds passed."""
    steps.kept("edges", graph.edges.height)
    joined = inverse_pairs(graph.edges)
    steps.kept("inverse pairs", joined.height)
    require(joined, SHAPE.benchmark, settings, steps)
    counted = pair_counts(graph.edges, joined)
    kept = passing(counted, settings.own)
    why = f"{settings.own.denominator} < {settings.own.min_triples} or share < {settings.own.ratio}"
    steps.kept("predicate pairs", kept.height, counted.height, why)
    passed = joined.join(kept.select("p1", "p2"), on=["p1", "p2"], how="semi")
    steps.kept("pairs", passed.height, joined.height, "predicate pair below a threshold")
    return passed


def inverse_pairs(edges: pl.DataFrame) -> pl.DataFrame:
    """(p1, p2, s, o) of all edges (s, p1, o) and (o, p2, s) with p1 < p2.

    Only edges whose pair of entities is linked both ways are joined: parallel edges bound the
    join. Parts by s + o, which is the same for both directions, bound the memory.
    """
    parts = -(-edges.height // PART)
    found = [edges.clear().select(p1="p", p2="p", s="s", o="o")]
    for part in range(parts):
        total = pl.col("s").cast(pl.UInt64) + pl.col("o").cast(pl.UInt64)
        some = edges.filter(total % parts == part)
        forward, backward = packed(some), packed(some, reverse=True)
        ordered = np.sort(forward)
        place = np.minimum(np.searchsorted(ordered, backward), len(ordered) - 1)
        linked = some.filter(pl.Series(ordered[place] == backward)) if len(ordered) else some
        other = linked.select(
            pl.col("o").alias("s"), pl.col("s").alias("o"), pl.col("p").alias("p2")
        )
        both = linked.rename({"p": "p1"}).join(other, on=["s", "o"])
        found.append(both.filter(pl.col("p1") < pl.col("p2")).select("p1", "p2", "s", "o"))
    return pl.concat(found)


def pair_counts(edges: pl.DataFrame, joined: pl.DataFrame) -> pl.DataFrame:
    """(p1, p2, k, n1, n2): inverse pairs of a predicate pair, and the triples of each predicate."""
    n = edges.group_by("p").agg(pl.len().cast(pl.Int64).alias("n"))
    counted = joined.group_by("p1", "p2").agg(pl.len().cast(pl.Int64).alias("k"))
    for side in ("1", "2"):
        counted = counted.join(n.rename({"p": f"p{side}", "n": f"n{side}"}), on=f"p{side}")
    return counted.sort("p1", "p2")


def passing(counted: pl.DataFrame, own: Bidirectional) -> pl.DataFrame:
    """The predicate pairs of `pair_counts` that pass `min_triples` and `ratio`."""
    denominator = DENOMINATORS[own.denominator]
    return counted.filter(denominator >= own.min_triples).filter(
        pl.col("k") / denominator >= own.ratio
    )
