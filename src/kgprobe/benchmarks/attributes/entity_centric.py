"""Entity-centric: `facts` facts of a well-connected entity."""

from typing import Any

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes import construct
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.knowledge.engine import count_rows, first
from kgprobe.knowledge.graph import Graph, is_among
from kgprobe.settings.benchmarks import LAMA, EntityCentric

DEFINITION = Definition(
    "entity_centric", ("p",), "{}", ("e",), (Triple("fact", "s", "p", "o"),), is_group=True
)


def build(graph: Graph, settings: AttributeSettings[EntityCentric]) -> construct.BuiltAttribute:
    """Build `entities` of the `top` entities by degree, each with `facts` of its edges by hash.

    The paper gives 20 facts; 270 entities follow from its 5,406 triples, 50 probed ones from the
    granularity of its scores.
    """
    setup, section = Setup(DEFINITION, graph, settings), settings.section
    edges = query(setup)
    top = top_entities(setup, edges)
    edges = edges.semi_join(graph.engine.table(top), "e")
    edges = graph.engine.keep(construct.with_labeled(setup, edges))
    counts = graph.frame(count_rows(edges, ["p"], labeled=edges["labeled"].sum()))
    structural = facts(setup, edges, construct.draw(setup, top, section.entities, "entities"))
    setup.count("structural build: facts", structural.height)
    usable, enough = edges, top
    if settings.shared.require_labels:
        usable, enough = usable_edges(setup, edges, counts, top.height)
    drawn = construct.draw(setup, enough, section.entities, "entities")
    probed = construct.draw(setup, drawn, section.eval_entities, "entities")
    labeled = facts(setup, usable, drawn)
    setup.count("entities", drawn.height, enough.height, "beyond the sample")
    setup.count("facts", labeled.height)
    setup.require(labeled.height)
    why = "beyond the evaluation sample"
    setup.count("evaluation sample", probed.height, drawn.height, why)
    return construct.finish(setup, labeled, probed, structural, counts)


def query(setup: Setup[EntityCentric]) -> Table:
    """Return (e, s, p, o): edges with entity e as subject, or (`directions`) also as object."""
    graph, section = setup.graph, setup.section
    edges = graph.without(graph.relations.numbers(section.exclude))
    if section.relations == "lama":
        edges = edges.filter(is_among(edges["p"], graph.relations.numbers(LAMA)))
    out = edges.select("s", "p", "o", e="s")
    return out if section.directions == "out" else out.union(edges.select("s", "p", "o", e="o"))


def top_entities(setup: Setup[Any], edges: Table) -> pl.DataFrame:
    """Return (e): the `top` entities by degree, ties to lower ids, of those with enough facts."""
    graph, engine, top = setup.graph, setup.engine, setup.section.top
    n = engine.keep(count_rows(edges, ["e"]))
    enough = n.filter(n["n"] >= least(setup))
    every, n_enough = engine.count(n), engine.count(enough)
    setup.count("edges", engine.numbers(n.aggregate(n=n["n"].sum()))["n"])
    why = f"fewer than {least(setup)} facts"
    setup.count("entities with enough facts", n_enough, every, why)
    setup.require(n_enough)
    degrees = graph.entities.select("degree", e="id").inner_join(enough, "e")
    chosen = graph.frame(first(degrees, top, [ibis.desc("degree"), "e"]).select("e"))
    setup.count("top by degree", chosen.height, n_enough, f"beyond the top {top}")
    return chosen


def least(setup: Setup[Any]) -> int:
    """Return the minimum number of facts of an entity (`allow_short`: 1)."""
    return 1 if setup.section.allow_short else setup.section.facts


def facts(setup: Setup[Any], edges: Table, chosen: pl.DataFrame) -> pl.DataFrame:
    """Return (e, s, p, o): `facts` edges of every chosen entity, by hash."""
    graph, ids = setup.graph, ["s", "p", "o"]
    some = edges.semi_join(graph.engine.table(chosen), "e").drop("labeled")
    return graph.frame(
        graph.smallest(some, setup.section.facts, setup.seed, ids, ["e"], "entity_centric")
    )


def usable_edges(
    setup: Setup[EntityCentric], edges: Table, counts: pl.DataFrame, n: int
) -> tuple[Table, pl.DataFrame]:
    """Return edges with labels and templates, and (e): the entities with enough of these."""
    usable = edges.filter(edges["labeled"])
    construct.count_labels(setup, counts, "facts with labels")
    if construct.drops_relations(setup):
        patterns, _ = construct.with_templates(setup, counts, "facts with a template")
        usable = usable.semi_join(setup.engine.table(patterns), "p")
    each = setup.graph.frame(count_rows(usable, ["e"])).filter(pl.col("n") >= least(setup))
    why = f"fewer than {least(setup)} usable facts"
    setup.count("entities with enough usable facts", each.height, n, why)
    setup.require(each.height)
    return usable, each.select("e")
