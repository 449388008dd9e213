"""Bias: one triple of a sensitive relation with an obscure subject (kg_attributes.md, 3.3)."""

from collections.abc import Mapping

import polars as pl

from kgprobe.benchmarks.attributes.examples import Shape, Triple, capped, pick, require
from kgprobe.benchmarks.attributes.graph import Graph, numbers
from kgprobe.benchmarks.attributes.items import Built, built
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.settings import Bias

SHAPE = Shape("bias", ("p",), "P{}", ("s", "o"), (Triple("fact", "s", "p", "o"),))


def build(graph: Graph, settings: Settings[Bias]) -> Built:
    """Triples of `relations` whose subject stands in at most `max_degree` edges, all of them.

    Objects that are variants of one gender, religion or continent get one label (`bias_labels`:
    {relation: {object: label}}); objects that the table does not know keep theirs and are listed.
    """
    steps = Funnel(SHAPE.benchmark)
    triples = candidates(graph, settings, steps)
    named = with_normal_labels(graph, triples, settings.bias_labels, steps)
    choose = capped(SHAPE, None, settings)
    picked = pick(SHAPE, triples, named, settings, steps, choose, None)
    return built(SHAPE, picked, named, settings, steps)


def candidates(graph: Graph, settings: Settings[Bias], steps: Funnel) -> pl.DataFrame:
    """(p, s, o) of the sensitive relations whose subject's degree is small enough."""
    edges = graph.of(numbers(settings.own.relations))
    steps.kept(
        f"edges of {', '.join(settings.own.relations)}",
        edges.height,
        graph.edges.height,
        "another relation",
    )
    degree = graph.entities.select(pl.col("id").alias("s"), "degree")
    if settings.own.literal_edges:
        extra = graph.literals.group_by("s").agg(pl.len().cast(pl.UInt32).alias("more"))
        degree = degree.join(extra, on="s", how="left").with_columns(
            degree=pl.col("degree") + pl.col("more").fill_null(0)
        )
    small = degree.filter(pl.col("degree") <= settings.own.max_degree)
    kept = edges.join(small.select("s"), on="s", how="semi")
    why = f"subject with more than {settings.own.max_degree} edges"
    steps.kept("obscure subjects", kept.height, edges.height, why)
    require(kept, SHAPE.benchmark, settings, steps)
    found = dict(kept["p"].value_counts().rows())
    for name, relation in zip(settings.own.relations, numbers(settings.own.relations), strict=True):
        n = found.get(relation, 0)
        steps.kept(f"of {name}", n, n, "too few for a breakdown" if n < 10 else "")
    return kept.select("p", "s", "o")


def with_normal_labels(
    graph: Graph, triples: pl.DataFrame, table: Mapping[str, Mapping[str, str]], steps: Funnel
) -> Graph:
    """The graph in which every object of the triples has its normal label."""
    known = {int(o[1:]): label for objects in table.values() for o, label in objects.items()}
    objects = triples["o"].unique().sort()
    unknown = objects.filter(~objects.is_in(list(known)))
    listed = ", ".join(f"Q{o}" for o in unknown.head(20)) + (" ..." if len(unknown) > 20 else "")
    why = f"objects not in the table keep their labels: {listed}" if len(unknown) else ""
    steps.kept("objects with a normal label", len(objects) - len(unknown), None, why)
    here = {o: label for o, label in known.items() if o in set(objects)}
    label = pl.col("id").replace_strict(here, default=pl.col("label"), return_dtype=pl.String)
    entities = graph.entities.with_columns(label=label) if here else graph.entities
    return Graph(graph.edges, graph.literals, entities, graph.counts)
