"""Symmetry: (s, r, o) and (o, r, s) both hold (kg_attributes.md, section 3.3)."""

import polars as pl

from kgprobe.benchmarks.attributes.examples import Shape, Triple, capped, pick, require
from kgprobe.benchmarks.attributes.graph import Graph, reversed_present
from kgprobe.benchmarks.attributes.items import Built, built
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.settings import Symmetry

SHAPE = Shape(
    "symmetry",
    ("p",),
    "P{}",
    ("s", "o"),
    (Triple("forward", "s", "p", "o"), Triple("backward", "o", "p", "s")),
)


def build(graph: Graph, settings: Settings[Symmetry]) -> Built:
    """Pairs of entities that a symmetric relation links in both directions.

    Of predicates with at least `min_triples` triples, of which a share of `ratio` or more is
    symmetric; at most `cap_pairs` pairs of each (the paper's 200 triples, read as 100 pairs).
    """
    steps = Funnel(SHAPE.benchmark)
    pairs = candidates(graph, settings, steps)
    choose = capped(SHAPE, settings.own.cap_pairs, settings)
    picked = pick(SHAPE, pairs, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: Settings[Symmetry], steps: Funnel) -> pl.DataFrame:
    """(p, s, o) with s < o: the unordered pairs of the predicates that pass the thresholds."""
    steps.kept("edges", graph.edges.height)
    both = graph.edges.filter(pl.Series(reversed_present(graph.edges)))
    steps.kept("reverse stored", both.height, graph.edges.height, "(o, r, s) is no edge")
    require(both, SHAPE.benchmark, settings, steps)
    counted = counts(graph.edges, both)
    if settings.own.ratio_over == "pairs":
        share = (pl.col("ns") / 2) / (pl.col("n") - pl.col("ns") / 2)
    else:
        share = pl.col("ns") / pl.col("n")
    enough = counted.filter(pl.col("n") >= settings.own.min_triples)
    kept = enough.filter(share >= settings.own.ratio)
    for step, frame, before, why in (
        ("predicates: min_triples", enough, counted, f"n < {settings.own.min_triples}"),
        ("predicates: ratio", kept, enough, f"symmetric share < {settings.own.ratio}"),
    ):
        steps.kept(step, frame.height, before.height, why)
    passed = both.join(kept.select("p"), on="p", how="semi")
    steps.kept("symmetric triples", passed.height, both.height, "predicate below a threshold")
    pairs = passed.filter(pl.col("s") < pl.col("o"))
    steps.kept("pairs", pairs.height, passed.height, "the same pair, the other way round")
    return pairs


def counts(edges: pl.DataFrame, both: pl.DataFrame) -> pl.DataFrame:
    """(p, n, ns): triples and symmetric triples of every predicate."""
    n = edges.group_by("p").agg(pl.len().cast(pl.Int64).alias("n"))
    ns = both.group_by("p").agg(pl.len().cast(pl.Int64).alias("ns"))
    return n.join(ns, on="p", how="left").with_columns(pl.col("ns").fill_null(0)).sort("p")
