"""Hierarchy: x is a subclass of y, y of z, and so z is a two-hop ancestor of x."""

import ibis
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import BuiltAttribute, construct, flag
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.knowledge.graph import Graph
from kgprobe.settings.benchmarks import Hierarchy


def definition(two_hop: str, graph: Graph) -> Definition:
    """Return an example's triples; the third is inferred, with its own or a step's template."""
    inferred = graph.relations.two_hop if two_hop == "own" else graph.relations.subclass_of
    hops = (Triple("hop1", "x", "p", "y"), Triple("hop2", "y", "p", "z"))
    third = Triple("two_hop", "x", inferred, "z", "inferred")
    return Definition("hierarchy", ("p",), "{}", ("x", "y", "z"), (*hops, third))


def build(graph: Graph, settings: AttributeSettings[Hierarchy]) -> BuiltAttribute:
    """Build `n` chains of two subclass-of steps, in one stratum (the paper's 1000)."""
    setup = Setup(definition(settings.section.two_hop, graph), graph, settings)
    return construct(setup, query(setup), setup.section.n)


def query(setup: Setup[Hierarchy]) -> Table:
    """Return (p, x, y, z, flag) of all chains x -> y -> z with x != z.

    A chain whose ends are also linked directly is flagged `direct_edge`, or dropped if `direct` is
    `drop`.
    """
    graph, engine, name = setup.graph, setup.engine, setup.graph.relations.subclass_of
    relations = setup.relations([name])
    edges = engine.keep(graph.of(relations).select("s", "o"), shared=True)
    chains = edges.select(x="s", y="o").inner_join(edges.select(y="s", z="o"), "y")
    direct = edges.select(_x="s", _z="o")
    chains = chains.left_join(direct, [("x", "_x"), ("z", "_z")])
    chains = engine.keep(chains.select("x", "y", "z", direct=chains["_x"].notnull()), shared=True)
    apart = chains.filter(chains["x"] != chains["z"])
    indirect = apart.filter(~apart["direct"])
    n_edges, every, ends, n_indirect = map(engine.count, (edges, chains, apart, indirect))
    setup.count(f"edges of {name}", n_edges, graph.size, "another relation")
    setup.count("chains of two", ends, every, "cycle of two")
    setup.require(ends)
    if setup.section.direct == "drop":
        setup.count("no direct edge", n_indirect, ends, f"(x, {name}, z) is stored")
        apart = indirect
    relation = ibis.literal(relations[0], "int32")
    return apart.select("x", "y", "z", p=relation, flag=flag("direct_edge", apart["direct"]))
