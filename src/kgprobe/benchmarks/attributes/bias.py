"""Bias: one triple of a sensitive relation with an obscure subject."""

from collections import Counter
from collections.abc import Mapping

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import (
    Benchmark,
    capped,
    construct,
    relations_of,
    require,
)
from kgprobe.benchmarks.attributes.examples import Definition, Triple
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Bias

DEFINITION = Definition("bias", ("p",), "{}", ("s", "o"), (Triple("fact", "s", "p", "o"),))


def build(graph: Graph, settings: AttributeSettings[Bias]) -> Benchmark:
    """Triples of `relations` whose subject stands in at most `max_degree` edges, all of them.

    Objects that are variants of one gender, religion or continent get one label (`bias_labels`:
    {relation: {object: label}}); objects that the table does not know keep theirs and are listed.
    """
    funnel = Funnel("bias")
    triples = query(graph, settings, funnel)
    named = with_normal_labels(graph, triples, settings.bias_labels, funnel)
    sample = capped(DEFINITION, None, graph, settings)
    return construct(DEFINITION, triples, named, settings, funnel, sample, None)


def query(graph: Graph, settings: AttributeSettings[Bias], funnel: Funnel) -> Table:
    """(p, s, o) of the sensitive relations whose subject's degree is small enough."""
    section = settings.section
    relations = relations_of(section.relations, graph, funnel)
    edges = graph.of(relations)
    # only of the subjects that are asked for
    subjects = edges.select(_id="s").distinct()
    degree = graph.entities.select("degree", _id="id").semi_join(subjects, "_id")
    if section.literal_edges:
        more = count_rows(graph.literals, ["s"])
        both = degree.left_join(more, [("_id", "s")])
        degree = both.select("_id", degree=both["degree"] + ibis.coalesce(both["n"], 0))
    obscure = degree.filter(degree["degree"] <= section.max_degree)
    kept = edges.semi_join(obscure, [("s", "_id")])
    total = int(graph.sizes.filter(pl.col("p").is_in(relations))["n"].sum())
    n = Counter(dict(graph.frame(count_rows(kept, ["p"])).select("p", "n").rows()))
    names = ", ".join(section.relations)
    funnel.count(f"edges of {names}", total, graph.size, "another relation")
    why = f"subject with more than {section.max_degree} edges"
    funnel.count("obscure subjects", sum(n.values()), total, why)
    require(sum(n.values()), "bias", settings, funnel)
    for p in relations:
        why = "too few for a breakdown" if n[p] < 10 else ""
        funnel.count(f"of {graph.relations.name(p)}", n[p], reason=why)
    return kept.select("p", "s", "o")


def with_normal_labels(
    graph: Graph, triples: Table, table: Mapping[str, Mapping[str, str]], funnel: Funnel
) -> Graph:
    """The graph in which every object of the triples has its normal label."""
    normal = {o: label for objects in table.values() for o, label in objects.items()}
    objects = graph.frame(triples.select("o").distinct())["o"].sort()
    names = graph.entity_names(objects)
    unknown = [names[o] for o in objects if names[o] not in normal]
    shown = ", ".join(unknown[:20]) + (" ..." if len(unknown) > 20 else "")
    why = f"objects not in the table keep their labels: {shown}" if unknown else ""
    funnel.count("objects with a normal label", len(objects) - len(unknown), None, why)
    return graph.renamed({o: normal[name] for o, name in names.items() if name in normal})
