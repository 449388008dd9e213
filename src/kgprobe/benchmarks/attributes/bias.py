"""Bias: one triple of a sensitive relation with an obscure subject."""

from collections.abc import Mapping

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import (
    Shape,
    TripleColumns,
    capped,
    pick,
    require,
    told_relations,
)
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Bias

SHAPE = Shape("bias", ("p",), "{}", ("s", "o"), (TripleColumns("fact", "s", "p", "o"),))


def build(graph: Graph, settings: AttributeSettings[Bias]) -> AttributeSet:
    """Triples of `relations` whose subject stands in at most `max_degree` edges, all of them.

    Objects that are variants of one gender, religion or continent get one label (`bias_labels`:
    {relation: {object: label}}); objects that the table does not know keep theirs and are listed.
    """
    steps = Funnel(SHAPE.benchmark)
    triples = candidates(graph, settings, steps)
    named = with_normal_labels(graph, triples, settings.bias_labels, steps)
    choose = capped(SHAPE, None, graph, settings)
    picked = pick(SHAPE, triples, named, settings, steps, choose, None)
    return built(SHAPE, picked, named, settings, steps)


def candidates(graph: Graph, settings: AttributeSettings[Bias], steps: Funnel) -> Table:
    """(p, s, o) of the sensitive relations whose subject's degree is small enough."""
    own = settings.own
    relations = told_relations(own.relations, graph, steps)
    edges = graph.of(relations)
    known = graph.entities.select(_id="id", degree="degree")
    # only of the subjects that are asked for
    degree = known.semi_join(edges.select(_id="s").distinct(), "_id")
    if own.literal_edges:
        more = counted(graph.literals, ["s"])
        both = degree.left_join(more, [("_id", "s")])
        degree = both.select("_id", degree=both["degree"] + ibis.coalesce(both["n"], 0))
    small = degree.filter(degree["degree"] <= own.max_degree)
    kept = edges.semi_join(small, [("s", "_id")])
    total = int(graph.sizes.filter(pl.col("p").is_in(relations))["n"].sum())
    found = dict(graph.frame(counted(kept, ["p"])).rows())
    listed, obscure = ", ".join(own.relations), sum(found.values())
    steps.kept(f"edges of {listed}", total, graph.size, "another relation")
    why = f"subject with more than {own.max_degree} edges"
    steps.kept("obscure subjects", obscure, total, why)
    require(obscure, SHAPE.benchmark, settings, steps)
    for relation in relations:
        n = found.get(relation, 0)
        steps.kept(
            f"of {graph.ids.relation(relation)}", n, n, "too few for a breakdown" if n < 10 else ""
        )
    return kept.select("p", "s", "o")


def with_normal_labels(
    graph: Graph, triples: Table, table: Mapping[str, Mapping[str, str]], steps: Funnel
) -> Graph:
    """The graph in which every object of the triples has its normal label."""
    normal = {o: label for objects in table.values() for o, label in objects.items()}
    known = {n: normal[o] for o, n in graph.ids.entity_numbers(normal).items()}
    objects = graph.frame(triples.select("o").distinct())["o"].sort()
    unknown = objects.filter(~objects.is_in(list(known)))
    shown = graph.ids.entities(unknown.head(20).to_list())
    listed = ", ".join(shown[o] for o in unknown.head(20)) + (" ..." if len(unknown) > 20 else "")
    why = f"objects not in the table keep their labels: {listed}" if len(unknown) else ""
    steps.kept("objects with a normal label", len(objects) - len(unknown), None, why)
    here = set(objects)
    return graph.renamed({o: label for o, label in known.items() if o in here})
