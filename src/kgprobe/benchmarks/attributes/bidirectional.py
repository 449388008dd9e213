"""Bidirectional: r1 and r2 link the same pair in opposite directions."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import Shape, TripleColumns, capped, pick, require
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Bidirectional

SHAPE = Shape(
    "bidirectional",
    ("p1", "p2"),
    "{}~{}",
    ("s", "o"),
    (TripleColumns("first", "s", "p1", "o"), TripleColumns("inverse", "o", "p2", "s")),
)
DENOMINATORS = {
    "min": pl.min_horizontal("n1", "n2"),
    "max": pl.max_horizontal("n1", "n2"),
    "first": pl.col("n1"),
    "second": pl.col("n2"),
}


def build(graph: Graph, settings: AttributeSettings[Bidirectional]) -> AttributeSet:
    """Pairs of entities with two relations in opposite directions.

    The paper says "the same strategy" as for symmetry: of predicate pairs with at least
    `min_triples` in the chosen `denominator`, of which a share of `ratio` or more has its inverse.
    """
    steps = Funnel(SHAPE.benchmark)
    pairs = candidates(graph, settings, steps)
    choose = capped(SHAPE, settings.own.cap, graph, settings)
    picked = pick(SHAPE, pairs, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: AttributeSettings[Bidirectional], steps: Funnel) -> Table:
    """(p1, p2, s, o): (s, p1, o) and (o, p2, s) are edges, p1 < p2, thresholds passed."""
    steps.kept("edges", graph.size)
    pairs = pair_counts(graph)
    inverse = int(pairs["k"].sum())
    steps.kept("inverse pairs", inverse)
    require(inverse, SHAPE.benchmark, settings, steps)
    kept = passing(pairs, settings.own)
    why = f"{settings.own.denominator} < {settings.own.min_triples} or share < {settings.own.ratio}"
    steps.kept("predicate pairs", kept.height, pairs.height, why)
    passed = int(kept["k"].sum())
    steps.kept("pairs", passed, inverse, "predicate pair below a threshold")
    chosen = graph.engine.table(kept.select("p1", "p2"))
    return inverse_pairs(graph).semi_join(chosen, ["p1", "p2"])


def inverse_pairs(graph: Graph) -> Table:
    """(p1, p2, s, o) of all edges (s, p1, o) and (o, p2, s) with p1 < p2."""
    return graph.facing.filter(graph.facing["p1"] < graph.facing["p2"])


def pair_counts(graph: Graph) -> pl.DataFrame:
    """(p1, p2, k, n1, n2): inverse pairs of a predicate pair, and the triples of each predicate."""
    pairs = graph.frame(counted(inverse_pairs(graph), ["p1", "p2"])).rename({"n": "k"})
    for side in ("1", "2"):
        sizes = graph.sizes.rename({"p": f"p{side}", "n": f"n{side}"})
        pairs = pairs.join(sizes, on=f"p{side}")
    return pairs.sort("p1", "p2")


def passing(counted: pl.DataFrame, own: Bidirectional) -> pl.DataFrame:
    """The predicate pairs of `pair_counts` that pass `min_triples` and `ratio`."""
    denominator = DENOMINATORS[own.denominator]
    return counted.filter(denominator >= own.min_triples).filter(
        pl.col("k") / denominator >= own.ratio
    )
