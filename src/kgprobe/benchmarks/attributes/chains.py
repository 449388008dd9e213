"""Shared steps of composite and paths: categories, edges to expand, sampling of patterns."""

from collections.abc import Sequence

import ibis
import polars as pl
from ibis.expr.types import IntegerColumn, Table

from kgprobe.benchmarks.attributes.construct import Sample
from kgprobe.benchmarks.attributes.definition import Setup
from kgprobe.knowledge.engine import count_rows, first
from kgprobe.knowledge.graph import Graph, categories, log
from kgprobe.settings.benchmarks import Composite, Paths


def top_categories(setup: Setup[Composite | Paths]) -> pl.DataFrame:
    """Return (category, members) of the most frequent categories, and list them in the funnel."""
    graph, relations = setup.graph, setup.relations(setup.section.category_relations)
    rows = graph.frame(categories(graph, setup.section.categories, relations))
    rows = rows.sort("members", "category", descending=[True, False])
    setup.count("categories", rows.height, None, describe_counts(rows.rows(), graph))
    return rows


def edges_to_expand(setup: Setup[Composite | Paths]) -> tuple[Table, Table]:
    """Return edges without the excluded relations: all of them, and with at most `max_out` per hub.

    In-degrees have hubs, out-degrees rarely do, so expansion from subjects is bounded; the excess
    edges of the few subjects with many are dropped by hash.
    """
    graph, section = setup.graph, setup.section
    excluded = graph.relations.numbers(section.exclude)
    edges = graph.without(excluded)
    left = int(graph.sizes.filter(~pl.col("p").is_in(excluded))["n"].sum())
    setup.count("edges to expand", left, graph.size, f"relation {', '.join(section.exclude)}")
    setup.require(left)
    degrees = count_rows(edges, ["s"])
    large = graph.engine.keep(degrees.filter(degrees["n"] > section.max_out), shared=True)
    hubs = graph.frame(large).sort("n", "s", descending=[True, False])
    if not hubs.height:
        return edges, edges
    names = graph.entity_names(hubs["s"])
    for entity, n in hubs.rows():
        log.info("hub %s: %d out-edges, %d of them are expanded", names[entity], n, section.max_out)
    lost = int(hubs["n"].sum()) - section.max_out * hubs.height
    shown = describe_counts(hubs.rows()[:20], graph)
    setup.count("hub cap", left - lost, left, f"out-edges of {shown}")
    some, names_of = edges.semi_join(large, "s"), ["s", "o", "p"]
    if graph.ids is None:
        # both ends as one number, to keep the samples of earlier versions
        some, names_of = some.mutate(ends=packed(some["s"], some["o"])), ["ends", "p"]
    keyed = graph.keyed(some, setup.seed, names_of, "hub")
    cut = first(keyed, section.max_out, ["_key", "o", "p"], ["s"]).select("s", "p", "o")
    return edges, edges.anti_join(large, "s").union(graph.engine.keep(cut, shared=True))


def packed(high: IntegerColumn, low: IntegerColumn) -> IntegerColumn:
    """Pack two 32-bit numbers into one of 64 bits, which is negative if `high` >= 2^31."""
    wide = high.cast("int64")
    signed = ibis.ifelse(wide < 1 << 31, wide, wide - (1 << 32))
    return signed * (1 << 32) + low.cast("int64")


def describe_counts(counts: Sequence[tuple[int, int]], graph: Graph) -> str:
    """Format entities and their numbers for the funnel."""
    names = graph.entity_names(entity for entity, _ in counts)
    return ", ".join(f"{names[entity]} ({n:,})" for entity, n in counts)


def frequent_or_fallback(
    setup: Setup[Composite | Paths], counts: pl.DataFrame, fallback: int, per: Sequence[str]
) -> Sample:
    """Return a sample function: `cap` candidates of each pattern with `min_combo` or more in the
    complete `counts` (relations, n).

    Rarer patterns are kept completely if `keep_rare`. If no pattern is frequent, `fallback` random
    candidates (of each `per`) are taken, whatever their pattern.
    """
    definition, graph, section, seed = setup.definition, setup.graph, setup.section, setup.seed
    relations = definition.relations
    common = counts.filter(pl.col("n") >= section.min_combo).select(relations)

    def sample(rows: Table) -> Table:
        if not common.height:
            rest = [name for name in definition.key if name not in per]
            return graph.smallest(rows, fallback, seed, rest, per, f"{setup.name}/fallback")
        often = graph.engine.table(common)
        inside = rows.semi_join(often, relations)
        ids = definition.entities
        chosen = graph.smallest(inside, section.cap, seed, ids, relations, setup.name)
        rare = rows.anti_join(often, relations)
        return chosen.union(rare) if section.keep_rare else chosen

    return sample
