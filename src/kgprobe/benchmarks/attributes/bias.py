"""Bias: one triple of a sensitive relation with an obscure subject."""

from collections import Counter

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import BuiltAttribute, construct
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings.benchmarks import Bias

DEFINITION = Definition("bias", ("p",), "{}", ("s", "o"), (Triple("fact", "s", "p", "o"),))


def build(graph: Graph, settings: AttributeSettings[Bias]) -> BuiltAttribute:
    """Build all triples of `relations` whose subject is in at most `max_degree` edges.

    Objects that are variants of one gender, religion or continent get one label (`bias_labels`);
    objects missing in that table keep theirs and are listed.
    """
    setup = Setup(DEFINITION, graph, settings)
    triples = query(setup)
    setup.graph = with_normal_labels(setup, triples)
    return construct(setup, triples, None, evaluate_all=True)


def query(setup: Setup[Bias]) -> Table:
    """Return (p, s, o) of the sensitive relations whose subject has a small enough degree."""
    graph, section = setup.graph, setup.section
    relations = setup.relations(section.relations)
    edges = graph.of(relations)
    # only for the subjects of these relations
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
    setup.count(f"edges of {names}", total, graph.size, "another relation")
    why = f"subject with more than {section.max_degree} edges"
    setup.count("obscure subjects", sum(n.values()), total, why)
    setup.require(sum(n.values()))
    for p in relations:
        why = "too few for a breakdown" if n[p] < 10 else ""
        setup.count(f"of {graph.relations.name(p)}", n[p], reason=why)
    return kept.select("p", "s", "o")


def with_normal_labels(setup: Setup[Bias], triples: Table) -> Graph:
    """Return the graph in which every object of the table has its normal label, also as an option;
    the funnel lists the triples' objects that are not in the table."""
    graph, normal = setup.graph, setup.settings.bias_labels
    objects = graph.frame(triples.select("o").distinct())["o"].sort()
    names = graph.entity_names(objects)
    unknown = [names[o] for o in objects if names[o] not in normal]
    shown = ", ".join(unknown[:20]) + (" ..." if len(unknown) > 20 else "")
    why = f"objects not in the table keep their labels: {shown}" if unknown else ""
    setup.count("objects with a normal label", len(objects) - len(unknown), None, why)
    return graph.renamed({o: normal[name] for name, o in graph.entity_numbers(normal).items()})
