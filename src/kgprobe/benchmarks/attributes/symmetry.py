"""Symmetry: (s, r, o) and (o, r, s) both hold (docs/papers/attributes.md, Benchmarks)."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import Benchmark, capped, construct, require
from kgprobe.benchmarks.attributes.examples import Definition, Triple
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Symmetry

DEFINITION = Definition(
    "symmetry",
    ("p",),
    "{}",
    ("s", "o"),
    (Triple("forward", "s", "p", "o"), Triple("backward", "o", "p", "s")),
)


def build(graph: Graph, settings: AttributeSettings[Symmetry]) -> Benchmark:
    """Pairs of entities that a symmetric relation links in both directions.

    At most `cap_pairs` pairs of each relation (the paper's 200 triples, read as 100 pairs).
    """
    funnel = Funnel("symmetry")
    pairs = query(graph, settings, funnel)
    sample = capped(DEFINITION, settings.section.cap_pairs, graph, settings)
    evaluate = settings.shared.eval_examples
    return construct(DEFINITION, pairs, graph, settings, funnel, sample, evaluate)


def query(graph: Graph, settings: AttributeSettings[Symmetry], funnel: Funnel) -> Table:
    """(p, s, o) with s < o: the unordered pairs of the predicates that have at least `min_triples`
    triples, of which a proportion of `ratio` or more is symmetric."""
    section = settings.section
    funnel.count("edges", graph.size)
    relations = counts(graph, graph.sizes)
    both = int(relations["ns"].sum())
    funnel.count("reverse stored", both, graph.size, "(o, r, s) is no edge")
    require(both, "symmetry", settings, funnel)
    n, ns = pl.col("n"), pl.col("ns")
    ratio = (ns / 2) / (n - ns / 2) if section.ratio_over == "pairs" else ns / n
    enough = relations.filter(n >= section.min_triples)
    kept = enough.filter(ratio >= section.ratio)
    why = f"n < {section.min_triples}"
    funnel.count("predicates: min_triples", enough.height, relations.height, why)
    why = f"symmetric share < {section.ratio}"
    funnel.count("predicates: ratio", kept.height, enough.height, why)
    passed = int(kept["ns"].sum())
    funnel.count("symmetric triples", passed, both, "predicate below a threshold")
    # an edge and its reverse are two, and no edge is its own reverse
    funnel.count("pairs", passed // 2, passed, "the same pair, the other way round")
    pairs = graph.symmetric.semi_join(graph.engine.table(kept.select("p")), "p")
    return pairs.filter(pairs["s"] < pairs["o"])


def counts(graph: Graph, sizes: pl.DataFrame) -> pl.DataFrame:
    """(p, n, ns): triples, of `sizes` (p, n), and symmetric triples of every predicate."""
    ns = graph.frame(count_rows(graph.symmetric, ["p"])).rename({"n": "ns"})
    return sizes.join(ns, on="p", how="left").with_columns(pl.col("ns").fill_null(0)).sort("p")
