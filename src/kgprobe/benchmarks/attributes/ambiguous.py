"""Ambiguous: two entities with the same name, one well known, with facts of one relation.

The paper takes the names from AmbER sets. `source: amber` reads those; `source: labels` is
kgprobe's substitute: labels shared by two or more entities of the graph.
"""

from dataclasses import replace

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.amber import amber_pairs, read_amber
from kgprobe.benchmarks.attributes.construct import BuiltAttribute, construct, flag
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.knowledge.engine import count_rows, first, folded
from kgprobe.knowledge.graph import Graph
from kgprobe.settings.benchmarks import Ambiguous

#: The paper's examples have no strata: 375 pairs of all relations together.
TRIPLES = (Triple("head", "head", "p", "x"), Triple("tail", "tail", "p", "y"))
DEFINITION = Definition("ambiguous", ("p",), "{}", ("head", "tail"), TRIPLES)


def build(graph: Graph, settings: AttributeSettings[Ambiguous]) -> BuiltAttribute:
    """Build up to `examples` pairs of facts whose prompts are the same text.

    With one prompt and k = 1 both facts can be correct only if their objects coincide or share a
    label; pairs of one object are flagged `same_object`, or dropped with `drop_same_object`.
    """
    setup = Setup(DEFINITION, graph, settings)
    pairs = query(setup)
    names, seed = DEFINITION.key, settings.seed

    def sample(rows: Table) -> Table:
        # one (x, y) of every pair and relation
        rows = graph.smallest(rows, 1, seed, ["x", "y"], names, "ambiguous/object")
        return graph.smallest(rows, settings.section.examples, seed, names, (), "ambiguous")

    bench = construct(setup, pairs, sample, evaluate_all=True)
    same = bench.labeled.filter(pl.col("x") == pl.col("y")).height
    setup.count("with different objects", bench.labeled.height - same, bench.labeled.height)
    distinct = pairs.select(*names).distinct()
    return replace(bench, counts=graph.frame(count_rows(distinct, ["p"])))


def query(setup: Setup[Ambiguous]) -> Table:
    """Return (p, head, tail, x, y, flag): facts of one relation about both entities of a pair."""
    graph, engine, section = setup.graph, setup.engine, setup.section
    if section.source == "amber":
        pairs = engine.table(amber_pairs(graph, read_amber(section.amber_sets), setup.funnel))
    else:
        pairs = name_pairs(setup)
    n_pairs = engine.count(pairs)
    setup.require(n_pairs)
    relations = set(setup.relations(section.relations))
    relations -= set(graph.relations.numbers(section.exclude))
    edges = graph.of(relations)
    heads = edges.select("p", head="s", x="o").inner_join(pairs, "head")
    heads = engine.keep(heads.select("head", "tail", "p", "x"))
    tails = edges.select("p", tail="s", y="o").inner_join(heads, ["tail", "p"])
    both = engine.keep(tails.select("p", "head", "tail", "x", "y"))
    n = engine.count(both.select("head", "tail").distinct())
    why = f"no relation in common of {len(relations)} ({', '.join(section.exclude)} left out)"
    setup.count("pairs with a shared relation", n, n_pairs, why)
    setup.count("pair and relation", engine.count(both.select(*DEFINITION.key).distinct()))
    same = both["x"] == both["y"]
    if section.drop_same_object:
        apart = both.filter(~same)
        setup.count("different objects", engine.count(apart), engine.count(both), "same object")
        both, same = apart, apart["x"] == apart["y"]
    return both.mutate(flag=flag("same_object", same))


def name_pairs(setup: Setup[Ambiguous]) -> Table:
    """Return (head, tail): the entities of highest and lowest degree of every shared name."""
    graph, engine = setup.graph, setup.engine
    connected = graph.connected
    named = connected.filter(connected["label"].notnull())
    name = folded(named["label"]) if setup.section.fold_case else named["label"]
    named = named.select("id", "degree", name=name)
    names = count_rows(named, ["name"])
    several = engine.keep(names.filter(names["n"] > 1))
    shared = engine.keep(named.semi_join(several, "name"))
    heads = first(shared, 1, [ibis.desc("degree"), "id"], ["name"])
    tails = first(shared, 1, ["degree", "id"], ["name"])
    both = heads.select("name", head="id", most="degree").inner_join(
        tails.select("name", tail="id", least="degree"), "name"
    )
    pairs = engine.keep(both.filter(both["most"] > both["least"]).select("head", "tail"))
    counts = map(engine.count, (connected, named, shared, several, pairs))
    entities, labeled, sharing, all_names, n = counts
    setup.count("entities with a label", labeled, entities, "no_label")
    setup.count("entities that share a name", sharing, labeled, "the only one of its name")
    setup.count("names with a head and a tail", n, all_names, "equal degrees")
    return pairs
