"""What composite and paths share: edges to expand, frequent patterns capped, rare ones whole."""

from collections.abc import Sequence

import ibis
import polars as pl
from ibis.expr.types import IntegerColumn, Table

from kgprobe.benchmarks.attributes.examples import Chooser, Shape, require, told_relations
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted, first
from kgprobe.knowledge.graph import Graph, categories, log
from kgprobe.knowledge.ids import WikidataIds
from kgprobe.settings import Composite, Paths, TwoSteps


def top_categories(
    graph: Graph, settings: AttributeSettings[Composite | Paths], steps: Funnel
) -> pl.DataFrame:
    """(category, members) of the most frequent categories, which the funnel names."""
    relations = told_relations(settings.own.category_relations, graph, steps)
    chosen = categories(graph, settings.own.categories, relations)
    shown = describe_counts(chosen.rows(), graph)
    steps.kept("categories", chosen.height, None, shown)
    return chosen


def expandable(
    shape: Shape,
    graph: Graph,
    settings: AttributeSettings[Composite | Paths | TwoSteps],
    steps: Funnel,
) -> tuple[Table, Table]:
    """Edges of all relations but the excluded ones, whole and with hubs cut to `max_out`.

    Objects have hubs, subjects do not: what expands from subjects is bounded, and what few subjects
    have in excess is cut by hash.
    """
    own = settings.own
    excluded = graph.ids.numbers(own.exclude)
    edges = graph.without(excluded)
    left = int(graph.sizes.filter(~pl.col("p").is_in(excluded))["n"].sum())
    steps.kept("edges to expand", left, graph.size, f"relation {', '.join(own.exclude)}")
    require(left, shape.benchmark, settings, steps)
    degrees = counted(edges, ["s"])
    what = (own.exclude, own.max_out, settings.seed)
    large = graph.once(("hubs", *what), degrees.filter(degrees["n"] > own.max_out))
    hubs = graph.frame(large)
    if not hubs.height:
        return edges, edges
    hubs = hubs.sort("n", "s", descending=[True, False])
    names = graph.ids.entities(hubs["s"].to_list())
    for entity, degree in hubs.rows():
        log.info(
            "hub %s: %d out-edges, %d of them are expanded", names[entity], degree, own.max_out
        )
    lost = int(hubs["n"].sum()) - own.max_out * hubs.height
    steps.kept(
        "hub cap", left - lost, left, f"out-edges of {describe_counts(most(hubs.rows()), graph)}"
    )
    some = edges.semi_join(large, "s")
    names_of = ["s", "o", "p"]
    if isinstance(graph.ids, WikidataIds):
        # both ends as one number, as the first samples had them
        some, names_of = some.mutate(ends=packed(some["s"], some["o"])), ["ends", "p"]
    keyed = graph.ids.keyed(some, settings.seed, names_of, "hub")
    cut = first(keyed, own.max_out, ["_key", "o", "p"], ["s"]).select("s", "p", "o")
    return edges, edges.anti_join(large, "s").union(graph.once(("cut", *what), cut))


def packed(high: IntegerColumn, low: IntegerColumn) -> IntegerColumn:
    """Two numbers of 32 bits in the 64 bits of one, which is negative from 2^31 in `high` on."""
    wide = high.cast("int64")
    signed = ibis.ifelse(wide < 1 << 31, wide, wide - (1 << 32))
    return signed * (1 << 32) + low.cast("int64")


def most(hubs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The hubs that the funnel tells, largest first."""
    return sorted(hubs, key=lambda hub: (-hub[1], hub[0]))[:20]


def describe_counts(counts: Sequence[tuple[int, int]], graph: Graph) -> str:
    """Entities and their numbers as text for the funnel."""
    names = graph.ids.entities(entity for entity, _ in counts)
    return ", ".join(f"{names[entity]} ({n:,})" for entity, n in counts)


def frequent_or_fallback(
    shape: Shape,
    graph: Graph,
    counts: pl.DataFrame,
    settings: AttributeSettings[Composite | Paths],
    fallback: int,
    per: Sequence[str],
) -> Chooser:
    """Chooses by the complete `counts` (strata, n): `cap` of the patterns with `min_combo` or more.

    Patterns below it are kept whole where `keep_rare`. When no pattern is frequent, `fallback`
    random examples (of each `per`) are taken, whatever their pattern.
    """
    strata = list(shape.strata)
    common = counts.filter(pl.col("n") >= settings.own.min_combo).select(strata)
    names = [*strata, *shape.ids]
    seed, label = settings.seed, shape.benchmark

    def choose(rows: Table) -> Table:
        if not common.height:
            rest = [name for name in names if name not in per]
            return graph.smallest(rows, fallback, seed, rest, per, f"{label}/fallback")
        often = graph.engine.table(common)
        frequent = rows.semi_join(often, strata)
        chosen = graph.smallest(frequent, settings.own.cap, seed, shape.ids, strata, label)
        return chosen.union(rows.anti_join(often, strata)) if settings.own.keep_rare else chosen

    return choose
