"""Hierarchy: x is a subclass of y, y of z, and so x of z two steps up."""

import ibis
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import (
    Benchmark,
    capped,
    construct,
    flag,
    relations_of,
    require,
)
from kgprobe.benchmarks.attributes.examples import Definition, Triple
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Hierarchy


def definition(two_up: str, graph: Graph) -> Definition:
    """The triples of an example; the third is inferred, with its own template or that of a step."""
    inferred = graph.relations.two_up if two_up == "own" else graph.relations.subclass_of
    hops = (Triple("hop1", "x", "p", "y"), Triple("hop2", "y", "p", "z"))
    third = Triple("two_up", "x", inferred, "z", "inferred")
    return Definition("hierarchy", ("p",), "{}", ("x", "y", "z"), (*hops, third))


def build(graph: Graph, settings: AttributeSettings[Hierarchy]) -> Benchmark:
    """`n` chains of two steps of subclass of, of one stratum (the paper's 1000)."""
    defined = definition(settings.section.two_up, graph)
    funnel = Funnel("hierarchy")
    chains = query(graph, settings, funnel)
    sample = capped(defined, settings.section.n, graph, settings)
    evaluate = settings.shared.eval_examples
    return construct(defined, chains, graph, settings, funnel, sample, evaluate)


def query(graph: Graph, settings: AttributeSettings[Hierarchy], funnel: Funnel) -> Table:
    """(p, x, y, z, flag) of all chains x -> y -> z with x != z.

    A chain whose ends are linked directly, too, is flagged `direct_edge`, or dropped where
    `direct` is `drop`.
    """
    engine, name = graph.engine, graph.relations.subclass_of
    relations = relations_of([name], graph, funnel)
    edges = engine.keep(graph.of(relations).select("s", "o"), shared=True)
    chains = edges.select(x="s", y="o").inner_join(edges.select(y="s", z="o"), "y")
    direct = edges.select(_x="s", _z="o")
    chains = chains.left_join(direct, [("x", "_x"), ("z", "_z")])
    chains = engine.keep(chains.select("x", "y", "z", direct=chains["_x"].notnull()), shared=True)
    apart = chains.filter(chains["x"] != chains["z"])
    indirect = apart.filter(~apart["direct"])
    n_edges, every, ends, n_indirect = map(engine.count, (edges, chains, apart, indirect))
    funnel.count(f"edges of {name}", n_edges, graph.size, "another relation")
    funnel.count("chains of two", ends, every, "cycle of two")
    require(ends, "hierarchy", settings, funnel)
    if settings.section.direct == "drop":
        funnel.count("no direct edge", n_indirect, ends, f"(x, {name}, z) is stored")
        apart = indirect
    relation = ibis.literal(relations[0], "int32")
    return apart.select("x", "y", "z", p=relation, flag=flag("direct_edge", apart["direct"]))
