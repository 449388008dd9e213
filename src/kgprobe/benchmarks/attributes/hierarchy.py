"""Hierarchy: x is a subclass of y, y of z, and so x of z two steps up."""

import ibis
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import (
    Shape,
    TripleColumns,
    capped,
    flag,
    pick,
    require,
    told_relations,
)
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Hierarchy


def shape(two_up: str, graph: Graph) -> Shape:
    """The triples of an example; the third is inferred, with its own template or that of a step."""
    third = graph.ids.two_up if two_up == "own" else graph.ids.subclass_of
    return Shape(
        "hierarchy",
        ("p",),
        "{}",
        ("x", "y", "z"),
        (
            TripleColumns("hop1", "x", "p", "y"),
            TripleColumns("hop2", "y", "p", "z"),
            TripleColumns("two_up", "x", third, "z", "inferred"),
        ),
    )


def build(graph: Graph, settings: AttributeSettings[Hierarchy]) -> AttributeSet:
    """`n` chains of two steps of subclass of, of one stratum (the paper's 1000)."""
    own = shape(settings.own.two_up, graph)
    steps = Funnel(own.benchmark)
    chains = candidates(graph, settings, steps)
    choose = capped(own, settings.own.n, graph, settings)
    picked = pick(own, chains, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(own, picked, graph, settings, steps)


def candidates(graph: Graph, settings: AttributeSettings[Hierarchy], steps: Funnel) -> Table:
    """(p, x, y, z, flag) of all chains x -> y -> z with x != z.

    A chain whose ends are linked directly, too, is flagged `direct_edge`, or dropped where
    `direct` is `drop`.
    """
    name = graph.ids.subclass_of
    relations = told_relations([name], graph, steps)
    edges = graph.once(name, graph.of(relations).select("s", "o"))
    chains = edges.select(x="s", y="o").inner_join(edges.select(y="s", z="o"), "y")
    direct = edges.select(_x="s", _z="o")
    marked = chains.left_join(direct, [("x", "_x"), ("z", "_z")])
    marked = marked.select("x", "y", "z", direct=marked["_x"].notnull())
    marked = graph.once("chains", marked)
    apart = marked.filter(marked["x"] != marked["z"])
    free = apart.filter(~apart["direct"])
    up, every, ends, open_ends = (
        graph.engine.numbers(rows.aggregate(n=rows.count()))["n"]
        for rows in (edges, marked, apart, free)
    )
    steps.kept(f"edges of {name}", up, graph.size, "another relation")
    steps.kept("chains of two", ends, every, "cycle of two")
    require(ends, "hierarchy", settings, steps)
    if settings.own.direct == "drop":
        steps.kept("no direct edge", open_ends, ends, f"(x, {name}, z) is stored")
        apart = free
    relation = ibis.literal(relations[0], "int32")
    return apart.select("x", "y", "z", p=relation, flag=flag("direct_edge", apart["direct"]))
