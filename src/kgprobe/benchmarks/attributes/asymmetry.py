"""Asymmetry: (s, r, o) holds and (o, r, s) does not (kg_attributes.md, section 3.3)."""

import polars as pl

from kgprobe.benchmarks.attributes.examples import Shape, Triple, capped, pick
from kgprobe.benchmarks.attributes.graph import Graph, reversed_present
from kgprobe.benchmarks.attributes.items import Built, built
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.attributes.symmetry import counts
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.settings import Asymmetry

SHAPE = Shape(
    "asymmetry",
    ("p",),
    "P{}",
    ("s", "o"),
    (Triple("forward", "s", "p", "o"), Triple("reversed", "o", "p", "s", "reversed")),
)


def build(graph: Graph, settings: Settings[Asymmetry]) -> Built:
    """Triples whose reverse is absent, each with its reversal as a probe that should fail.

    Of predicates with at least `min_triples` triples, literals included, of which a share of
    `ratio` or more is not symmetric; `strict` demands all. At most `cap` of each predicate.
    """
    steps = Funnel(SHAPE.benchmark)
    triples = candidates(graph, settings, steps)
    choose = capped(SHAPE, settings.own.cap, settings)
    picked = pick(SHAPE, triples, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: Settings[Asymmetry], steps: Funnel) -> pl.DataFrame:
    """(p, s, o, flags): one-way triples; `o` is the code of a literal where it is above 2^63.

    The flag reverse_unknown stands where the predicate has any symmetric triple: in an open world
    a missing edge is not a false one.
    """
    wide = [pl.col("p"), pl.col("s"), pl.col("o").cast(pl.UInt64)]
    literals = graph.literals if settings.shared.literals else graph.literals.clear()
    steps.kept("edges and literals", graph.edges.height + literals.height)
    both = pl.Series(reversed_present(graph.edges))
    counted = counts(
        pl.concat([graph.edges.select("p"), literals.select("p")]), graph.edges.filter(both)
    )
    enough = counted.filter(pl.col("n") >= settings.own.min_triples)
    steps.kept(
        "predicates: min_triples", enough.height, counted.height, f"n < {settings.own.min_triples}"
    )
    kept = enough.filter(1 - pl.col("ns") / pl.col("n") >= settings.own.ratio)
    if settings.own.strict:
        kept = kept.filter(pl.col("ns") == 0)
    why = f"asymmetric share < {settings.own.ratio}" + (" or not 1" if settings.own.strict else "")
    steps.kept("predicates: ratio", kept.height, enough.height, why)
    both_kinds = kept.filter(pl.col("ns") / pl.col("n") >= settings.own.ratio)
    listed = ", ".join(f"P{p}" for p in both_kinds["p"])
    steps.kept("of them symmetric enough, too", both_kinds.height, None, listed)
    one_way = pl.concat([graph.edges.filter(~both).select(wide), literals.select(wide)])
    steps.kept(
        "reverse absent",
        one_way.height,
        graph.edges.height + literals.height,
        "(o, r, s) is an edge",
    )
    passed = one_way.join(kept.select("p", "ns"), on="p", how="inner")
    steps.kept("triples", passed.height, one_way.height, "predicate below a threshold")
    unknown = pl.when(pl.col("ns") > 0).then(pl.lit(["reverse_unknown"]))
    return passed.select(
        "p", "s", "o", flags=unknown.otherwise(pl.lit([], dtype=pl.List(pl.String)))
    )
