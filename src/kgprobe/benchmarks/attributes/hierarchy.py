"""Hierarchy: x is a subclass of y, y of z, and so x of z two steps up (kg_attributes.md, 3.3)."""

import polars as pl

from kgprobe.benchmarks.attributes.examples import Shape, Triple, capped, pick, require
from kgprobe.benchmarks.attributes.frames import SUBCLASS_OF
from kgprobe.benchmarks.attributes.graph import Graph
from kgprobe.benchmarks.attributes.items import TWO_UP, Built, built
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.settings import Hierarchy


def shape(two_up: str) -> Shape:
    """The triples of an example; the third is inferred, with its own template or P279's."""
    third = TWO_UP if two_up == "own" else f"P{SUBCLASS_OF}"
    return Shape(
        "hierarchy",
        ("p",),
        "P{}",
        ("x", "y", "z"),
        (
            Triple("hop1", "x", "p", "y"),
            Triple("hop2", "y", "p", "z"),
            Triple("two_up", "x", third, "z", "inferred"),
        ),
    )


def build(graph: Graph, settings: Settings[Hierarchy]) -> Built:
    """`n` chains of two steps of subclass of, of one stratum (the paper's 1000)."""
    own = shape(settings.own.two_up)
    steps = Funnel(own.benchmark)
    chains = candidates(graph, settings, steps)
    choose = capped(own, settings.own.n, settings)
    picked = pick(own, chains, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(own, picked, graph, settings, steps)


def candidates(graph: Graph, settings: Settings[Hierarchy], steps: Funnel) -> pl.DataFrame:
    """(p, x, y, z, flags) of all chains x -> y -> z with x != z.

    A chain whose ends are linked directly, too, is flagged `direct_edge`, or dropped where
    `direct` is `drop`.
    """
    edges = graph.of([SUBCLASS_OF]).select("s", "o")
    steps.kept("edges of P279", edges.height, graph.edges.height, "another relation")
    chains = edges.select(x="s", y="o").join(edges.select(y="s", z="o"), on="y")
    ends = chains.filter(pl.col("x") != pl.col("z"))
    steps.kept("chains of two", ends.height, chains.height, "cycle of two")
    require(ends, "hierarchy", settings, steps)
    direct = edges.select(x="s", z="o", direct=pl.lit(True))
    marked = ends.join(direct, on=["x", "z"], how="left")
    known = pl.col("direct").fill_null(False)
    if settings.own.direct == "drop":
        kept = marked.filter(~known)
        steps.kept("no direct edge", kept.height, marked.height, "(x, P279, z) is stored")
        marked = kept
    flags = pl.when(known).then(pl.lit(["direct_edge"]))
    return marked.select(
        pl.lit(SUBCLASS_OF, dtype=pl.UInt16).alias("p"),
        "x",
        "y",
        "z",
        flags.otherwise(pl.lit([], dtype=pl.List(pl.String))).alias("flags"),
    )
