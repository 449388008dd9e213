"""Asymmetry: (s, r, o) holds and (o, r, s) does not (kg_attributes.md, section 3.3)."""

import polars as pl

from kgprobe.benchmarks.graph import Graph, reversed_present
from kgprobe.benchmarks.graph_examples import Settings, Shape, Steps, Triple, capped, pick
from kgprobe.benchmarks.graph_items import Built, built
from kgprobe.benchmarks.symmetry import counts

SHAPE = Shape(
    "asymmetry",
    ("p",),
    "P{}",
    ("s", "o"),
    (Triple("forward", "s", "p", "o"), Triple("reversed", "o", "p", "s", "reversed")),
)


def build(graph: Graph, settings: Settings) -> Built:
    """Triples whose reverse is absent, each with its reversal as a probe that should fail.

    Of predicates with at least `min_triples` triples, literals included, of which a share of
    `ratio` or more is not symmetric; `strict` demands all. At most `cap` of each predicate.
    """
    steps = Steps(SHAPE.benchmark)
    triples = candidates(graph, settings, steps)
    choose = capped(SHAPE, settings["cap"], settings)
    picked = pick(SHAPE, triples, graph, settings, steps, choose, settings["eval_examples"])
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: Settings, steps: Steps) -> pl.DataFrame:
    """(p, s, o, flags): one-way triples; `o` is the code of a literal where it is above 2^63.

    The flag reverse_unknown stands where the predicate has any symmetric triple: in an open world
    a missing edge is not a false one.
    """
    wide = [pl.col("p"), pl.col("s"), pl.col("o").cast(pl.UInt64)]
    literals = graph.literals if settings["literals"] else graph.literals.clear()
    steps.add("edges and literals", graph.edges.height + literals.height)
    both = pl.Series(reversed_present(graph.edges))
    counted = counts(
        pl.concat([graph.edges.select("p"), literals.select("p")]), graph.edges.filter(both)
    )
    enough = counted.filter(pl.col("n") >= settings["min_triples"])
    steps.add(
        "predicates: min_triples", enough.height, counted.height, f"n < {settings['min_triples']}"
    )
    kept = enough.filter(1 - pl.col("ns") / pl.col("n") >= settings["ratio"])
    if settings["strict"]:
        kept = kept.filter(pl.col("ns") == 0)
    why = f"asymmetric share < {settings['ratio']}" + (" or not 1" if settings["strict"] else "")
    steps.add("predicates: ratio", kept.height, enough.height, why)
    one_way = pl.concat([graph.edges.filter(~both).select(wide), literals.select(wide)])
    steps.add(
        "reverse absent",
        one_way.height,
        graph.edges.height + literals.height,
        "(o, r, s) is an edge",
    )
    passed = one_way.join(kept.select("p", "ns"), on="p", how="inner")
    steps.add("triples", passed.height, one_way.height, "predicate below a threshold")
    unknown = pl.when(pl.col("ns") > 0).then(pl.lit(["reverse_unknown"]))
    return passed.select(
        "p", "s", "o", flags=unknown.otherwise(pl.lit([], dtype=pl.List(pl.String)))
    )
