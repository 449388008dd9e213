"""Symmetry: (s, r, o) and (o, r, s) both hold (docs/papers/attributes.md, Benchmarks)."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import Shape, TripleColumns, capped, pick, require
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Symmetry

SHAPE = Shape(
    "symmetry",
    ("p",),
    "{}",
    ("s", "o"),
    (TripleColumns("forward", "s", "p", "o"), TripleColumns("backward", "o", "p", "s")),
)


def build(graph: Graph, settings: AttributeSettings[Symmetry]) -> AttributeSet:
    """Pairs of entities that a symmetric relation links in both directions.

    Of predicates with at least `min_triples` triples, of which a share of `ratio` or more is
    symmetric; at most `cap_pairs` pairs of each (the paper's 200 triples, read as 100 pairs).
    """
    steps = Funnel(SHAPE.benchmark)
    pairs = candidates(graph, settings, steps)
    choose = capped(SHAPE, settings.own.cap_pairs, graph, settings)
    picked = pick(SHAPE, pairs, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: AttributeSettings[Symmetry], steps: Funnel) -> Table:
    """(p, s, o) with s < o: the unordered pairs of the predicates that pass the thresholds."""
    steps.kept("edges", graph.size)
    relations = counts(graph, graph.sizes)
    both = int(relations["ns"].sum())
    steps.kept("reverse stored", both, graph.size, "(o, r, s) is no edge")
    require(both, SHAPE.benchmark, settings, steps)
    if settings.own.ratio_over == "pairs":
        share = (pl.col("ns") / 2) / (pl.col("n") - pl.col("ns") / 2)
    else:
        share = pl.col("ns") / pl.col("n")
    enough = relations.filter(pl.col("n") >= settings.own.min_triples)
    kept = enough.filter(share >= settings.own.ratio)
    for step, frame, before, why in (
        ("predicates: min_triples", enough, relations, f"n < {settings.own.min_triples}"),
        ("predicates: ratio", kept, enough, f"symmetric share < {settings.own.ratio}"),
    ):
        steps.kept(step, frame.height, before.height, why)
    passed = int(kept["ns"].sum())
    steps.kept("symmetric triples", passed, both, "predicate below a threshold")
    # an edge and its reverse are two, and no edge is its own reverse
    steps.kept("pairs", passed // 2, passed, "the same pair, the other way round")
    pairs = graph.mutual.semi_join(graph.engine.table(kept.select("p")), "p")
    return pairs.filter(pairs["s"] < pairs["o"])


def counts(graph: Graph, sizes: pl.DataFrame) -> pl.DataFrame:
    """(p, n, ns): triples, of `sizes` (p, n), and symmetric triples of every predicate."""
    ns = graph.frame(counted(graph.mutual, ["p"])).rename({"n": "ns"})
    return sizes.join(ns, on="p", how="left").with_columns(pl.col("ns").fill_null(0)).sort("p")
