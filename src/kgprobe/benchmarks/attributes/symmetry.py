"""Symmetry: (s, r, o) and (o, r, s) both hold (docs/papers/attributes.md, Benchmarks)."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import BuiltAttribute, construct
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings.benchmarks import Symmetry

TRIPLES = (Triple("forward", "s", "p", "o"), Triple("backward", "o", "p", "s"))
DEFINITION = Definition("symmetry", ("p",), "{}", ("s", "o"), TRIPLES)


def build(graph: Graph, settings: AttributeSettings[Symmetry]) -> BuiltAttribute:
    """Build pairs of entities that a symmetric relation links in both directions.

    At most `cap_pairs` pairs of each relation (the paper's 200 triples, interpreted as 100 pairs).
    """
    setup = Setup(DEFINITION, graph, settings)
    return construct(setup, query(setup), setup.section.cap_pairs)


def query(setup: Setup[Symmetry]) -> Table:
    """Return (p, s, o) with s < o: unordered pairs of predicates that have at least `min_triples`
    triples, of which at least a proportion of `ratio` is symmetric."""
    graph, section = setup.graph, setup.section
    setup.count("edges", graph.size)
    relations = counts(graph, graph.sizes)
    both = int(relations["ns"].sum())
    setup.count("reverse stored", both, graph.size, "(o, r, s) is no edge")
    setup.require(both)
    n, ns = pl.col("n"), pl.col("ns")
    ratio = (ns / 2) / (n - ns / 2) if section.ratio_over == "pairs" else ns / n
    enough = relations.filter(n >= section.min_triples)
    kept = enough.filter(ratio >= section.ratio)
    why = f"n < {section.min_triples}"
    setup.count("predicates: min_triples", enough.height, relations.height, why)
    why = f"symmetric share < {section.ratio}"
    setup.count("predicates: ratio", kept.height, enough.height, why)
    passed = int(kept["ns"].sum())
    setup.count("symmetric triples", passed, both, "predicate below a threshold")
    # an edge and its reverse are two edges, and no edge is its own reverse
    setup.count("pairs", passed // 2, passed, "the same pair, the other way round")
    pairs = graph.symmetric.semi_join(graph.engine.table(kept.select("p")), "p")
    return pairs.filter(pairs["s"] < pairs["o"])


def counts(graph: Graph, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return (p, n, ns): triples, from `sizes` (p, n), and symmetric triples of every predicate."""
    ns = graph.frame(count_rows(graph.symmetric, ["p"])).rename({"n": "ns"})
    return sizes.join(ns, on="p", how="left").with_columns(pl.col("ns").fill_null(0)).sort("p")
