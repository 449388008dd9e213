"""Entity-centric: `facts` facts of a well-connected entity."""

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import (
    NO_LABEL,
    Benchmark,
    demand_templates,
    draw,
    require,
    with_labeled,
    with_sampled,
    with_templates,
)
from kgprobe.benchmarks.attributes.examples import Definition, Triple
from kgprobe.benchmarks.attributes.frames import LAMA
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import count_rows, first
from kgprobe.knowledge.graph import Graph, is_among
from kgprobe.settings import EntityCentric

DEFINITION = Definition(
    "entity_centric", ("p",), "{}", ("e",), (Triple("fact", "s", "p", "o"),), is_group=True
)
Settings = AttributeSettings[EntityCentric]


def build(graph: Graph, settings: Settings) -> Benchmark:
    """`entities` of the `top` entities by degree, each with `facts` of its edges by hash.

    The paper gives 20 facts; 270 entities follow from its 5,406 triples, 50 probed ones from the
    grid of its scores.
    """
    section, funnel = settings.section, Funnel("entity_centric")
    edges = query(graph, settings)
    top = top_entities(graph, edges, settings, funnel)
    edges = edges.semi_join(graph.engine.table(top), "e")
    edges = graph.engine.keep(with_labeled(DEFINITION, edges, graph, settings))
    counts = graph.frame(count_rows(edges, ["p"], labeled=edges["labeled"].sum()))
    drawn = draw(top, section.entities, graph, settings, "entity_centric/entities")
    structural = facts(graph, edges, drawn, settings)
    funnel.count("structural build: facts", structural.height)
    usable, enough = edges, top
    if settings.shared.require_labels:
        usable, enough = usable_edges(graph, edges, counts, top.height, settings, funnel)
    drawn = draw(enough, section.entities, graph, settings, "entity_centric/entities")
    probed = draw(drawn, section.eval_entities, graph, settings, "entity_centric/entities")
    labeled = with_sampled(facts(graph, usable, drawn, settings), probed)
    funnel.count("entities", drawn.height, enough.height, "beyond the sample")
    funnel.count("facts", labeled.height)
    require(labeled.height, "entity_centric", settings, funnel)
    why = "beyond the evaluation sample"
    funnel.count("evaluation sample", probed.height, drawn.height, why)
    demand_templates(DEFINITION, labeled.filter("sampled"), graph, settings)
    structural = structural.with_columns(sampled=pl.lit(False))
    return Benchmark(DEFINITION, labeled, structural, counts, graph, settings, funnel)


def query(graph: Graph, settings: Settings) -> Table:
    """(e, s, p, o): the edges that are facts of entity e, as subject, or as object, too."""
    edges = graph.without(graph.relations.numbers(settings.section.exclude))
    if settings.section.relations == "lama":
        edges = edges.filter(is_among(edges["p"], graph.relations.numbers([f"P{n}" for n in LAMA])))
    out = edges.select("s", "p", "o", e="s")
    if settings.section.directions == "out":
        return out
    return out.union(edges.select("s", "p", "o", e="o"))


def top_entities(graph: Graph, edges: Table, settings: Settings, funnel: Funnel) -> pl.DataFrame:
    """(e): the `top` entities by degree, ties to the lower id, of those with enough facts."""
    top = settings.section.top
    n = graph.engine.keep(count_rows(edges, ["e"]))
    enough = n.filter(n["n"] >= least(settings))
    every, n_enough = graph.engine.count(n), graph.engine.count(enough)
    funnel.count("edges", graph.engine.numbers(n.aggregate(n=n["n"].sum()))["n"])
    why = f"fewer than {least(settings)} facts"
    funnel.count("entities with enough facts", n_enough, every, why)
    require(n_enough, "entity_centric", settings, funnel)
    degrees = graph.entities.select("degree", e="id").inner_join(enough, "e")
    chosen = graph.frame(first(degrees, top, [ibis.desc("degree"), "e"]).select("e"))
    funnel.count("top by degree", chosen.height, n_enough, f"beyond the top {top}")
    return chosen


def least(settings: Settings) -> int:
    """How many facts an entity needs (`allow_short`: any will do)."""
    return 1 if settings.section.allow_short else settings.section.facts


def facts(graph: Graph, edges: Table, chosen: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """(e, s, p, o) of `facts` edges of every chosen entity, by hash."""
    some = edges.semi_join(graph.engine.table(chosen), "e").drop("labeled")
    n, ids = settings.section.facts, ["s", "p", "o"]
    return graph.frame(graph.smallest(some, n, settings.seed, ids, ["e"], "entity_centric"))


def usable_edges(
    graph: Graph, edges: Table, counts: pl.DataFrame, n: int, settings: Settings, funnel: Funnel
) -> tuple[Table, pl.DataFrame]:
    """Edges with labels and templates, and (e): those of the `n` entities with enough of them."""
    usable = edges.filter(edges["labeled"])
    funnel.count(
        "facts with labels", int(counts["labeled"].sum()), int(counts["n"].sum()), NO_LABEL
    )
    if settings.templates is not None and settings.shared.missing_template == "drop":
        step = "facts with a template"
        patterns, _ = with_templates(DEFINITION, counts, graph, settings, funnel, step)
        usable = usable.semi_join(graph.engine.table(patterns), "p")
    each = graph.frame(count_rows(usable, ["e"])).filter(pl.col("n") >= least(settings))
    why = f"fewer than {least(settings)} usable facts"
    funnel.count("entities with enough usable facts", each.height, n, why)
    require(each.height, "entity_centric", settings, funnel)
    return usable, each.select("e")
