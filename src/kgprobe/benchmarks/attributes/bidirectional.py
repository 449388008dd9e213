"""Bidirectional: r1 and r2 link the same pair in opposite directions."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import BuiltAttribute, construct
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings.benchmarks import Bidirectional

TRIPLES = (Triple("first", "s", "p1", "o"), Triple("inverse", "o", "p2", "s"))
DEFINITION = Definition("bidirectional", ("p1", "p2"), "{}~{}", ("s", "o"), TRIPLES)
DENOMINATORS = {
    "min": pl.min_horizontal("n1", "n2"),
    "max": pl.max_horizontal("n1", "n2"),
    "first": pl.col("n1"),
    "second": pl.col("n2"),
}


def build(graph: Graph, settings: AttributeSettings[Bidirectional]) -> BuiltAttribute:
    """Build pairs of entities with two relations in opposite directions; at most `cap` per pair of
    relations."""
    setup = Setup(DEFINITION, graph, settings)
    return construct(setup, query(setup), setup.section.cap)


def query(setup: Setup[Bidirectional]) -> Table:
    """Return (p1, p2, s, o): (s, p1, o) and (o, p2, s) are edges, p1 < p2, thresholds passed.

    The paper says "the same strategy" as for symmetry: predicate pairs need at least `min_triples`
    triples in the chosen `denominator`, and a proportion of at least `ratio` of these with an
    inverse.
    """
    graph, section = setup.graph, setup.section
    setup.count("edges", graph.size)
    pairs = pair_counts(graph)
    inverse = int(pairs["k"].sum())
    setup.count("inverse pairs", inverse)
    setup.require(inverse)
    n = DENOMINATORS[section.denominator]
    kept = pairs.filter(n >= section.min_triples, pl.col("k") / n >= section.ratio)
    why = f"{section.denominator} < {section.min_triples} or share < {section.ratio}"
    setup.count("predicate pairs", kept.height, pairs.height, why)
    passed = int(kept["k"].sum())
    setup.count("pairs", passed, inverse, "predicate pair below a threshold")
    chosen = graph.engine.table(kept.select("p1", "p2"))
    return inverse_pairs(graph).semi_join(chosen, ["p1", "p2"])


def inverse_pairs(graph: Graph) -> Table:
    """Return (p1, p2, s, o) of all edges (s, p1, o) and (o, p2, s) with p1 < p2."""
    return graph.reciprocal.filter(graph.reciprocal["p1"] < graph.reciprocal["p2"])


def pair_counts(graph: Graph) -> pl.DataFrame:
    """Return (p1, p2, k, n1, n2): inverse pairs of a predicate pair, and triples of each."""
    pairs = graph.frame(count_rows(inverse_pairs(graph), ["p1", "p2"])).rename({"n": "k"})
    for side in ("1", "2"):
        sizes = graph.sizes.rename({"p": f"p{side}", "n": f"n{side}"})
        pairs = pairs.join(sizes, on=f"p{side}")
    return pairs.sort("p1", "p2")
