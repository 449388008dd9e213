"""Entity-centric: `facts` facts of a well-connected entity."""

from functools import partial

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import NO_LABEL, refuse_missing, require
from kgprobe.benchmarks.attributes.frames import LAMA, PATTERNS
from kgprobe.benchmarks.attributes.items import AttributeSet, BuildRows
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge import engine
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import EntityCentric

BENCHMARK = "entity_centric"


def build(graph: Graph, settings: AttributeSettings[EntityCentric]) -> AttributeSet:
    """`entities` of the `top` entities by degree, each with `facts` of its edges by hash.

    The paper gives 20 facts; 270 entities follow from its 5,406 triples, 50 probed ones from the
    grid of its scores. An entity needs that many out-edges (`allow_short`: fewer will do).
    """
    steps = Funnel(BENCHMARK)
    edges = entity_edges(graph, settings)
    chosen = candidates(graph, edges, settings, steps)
    # facts of the few entities on top, each with whether both sides have a label
    own = own_edges(graph, edges, chosen)
    drawn = entities(graph, chosen, settings.own.entities, settings)
    structural = facts(graph, own, drawn, settings)
    steps.kept("structural build: facts", structural.height)
    usable, named = own, chosen
    if settings.shared.require_labels:
        usable, named = usable_edges(graph, own, chosen, settings, steps)
    taken = entities(graph, named, settings.own.entities, settings)
    probed = entities(graph, taken, settings.own.eval_entities, settings)
    rows = facts(graph, usable, taken, settings)
    steps.kept("entities", taken.height, named.height, "beyond the sample")
    steps.kept("facts", rows.height)
    require(rows.height, BENCHMARK, settings, steps)
    steps.kept("evaluation sample", probed.height, taken.height, "beyond the evaluation sample")
    rows = rows.join(
        probed.select("e", sampled=pl.lit(True)), on="e", how="left"
    ).with_columns(pl.col("sampled").fill_null(False))  # fmt: skip
    demand(rows, graph, settings)
    structural = structural.with_columns(sampled=pl.lit(False))
    patterns = _patterns(graph, graph.frame(engine.counted(own, ["p"])), structural, rows)
    graph.engine.drop(own)
    labelled, bare = (BuildRows(frame, partial(_long, graph)) for frame in (rows, structural))
    return AttributeSet(BENCHMARK, labelled, bare, patterns, graph, settings, steps)


def entity_edges(graph: Graph, settings: AttributeSettings[EntityCentric]) -> Table:
    """(e, s, p, o): the edges that are facts of entity e, as subject, or as object, too."""
    edges = graph.without(graph.ids.numbers(settings.own.exclude))
    if settings.own.relations == "lama":
        edges = graph.of(graph.ids.numbers([f"P{n}" for n in LAMA]), edges)
    out = edges.select("s", "p", "o", e="s")
    if settings.own.directions == "out":
        return out
    return out.union(edges.select("s", "p", "o", e="o"))


def candidates(
    graph: Graph, edges: Table, settings: AttributeSettings[EntityCentric], steps: Funnel
) -> pl.DataFrame:
    """(e, n): the `top` entities by degree, ties to the lower id, of those with enough facts."""
    n = graph.engine.keep(engine.counted(edges, ["e"]))
    least = 1 if settings.own.allow_short else settings.own.facts
    enough = n.filter(n["n"] >= least)
    found = graph.engine.numbers(
        n.aggregate(facts=n["n"].sum(), every=n.count(), enough=(n["n"] >= least).sum())
    )
    steps.kept("edges", found["facts"])
    why = f"fewer than {least} facts"
    steps.kept("entities with enough facts", found["enough"], found["every"], why)
    require(found["enough"], BENCHMARK, settings, steps)
    degrees = graph.entities.select(e="id", degree="degree").inner_join(enough, "e")
    top = engine.first(degrees, settings.own.top, [ibis.desc("degree"), "e"])
    chosen = graph.frame(top.select("e", "n")).sort("e")
    graph.engine.drop(n)
    why = f"beyond the top {settings.own.top}"
    steps.kept("top by degree", chosen.height, found["enough"], why)
    return chosen


def own_edges(graph: Graph, edges: Table, chosen: pl.DataFrame) -> Table:
    """(e, s, p, o, labelled): the facts of the chosen entities."""
    own = edges.semi_join(graph.engine.table(chosen.select("e")), "e")
    for side in ("s", "o"):
        own = own.left_join(graph.labelled.select(**{f"_{side}": "id"}), [(side, f"_{side}")])
    labelled = own["_s"].notnull() & own["_o"].notnull()
    return graph.engine.keep(own.select("e", "s", "p", "o", labelled=labelled))


def entities(
    graph: Graph, frame: pl.DataFrame, n: int, settings: AttributeSettings[EntityCentric]
) -> pl.DataFrame:
    """`n` entities by hash; a smaller sample is a part of a larger one."""
    return graph.ids.sample(frame, n, settings.seed, ["e"], f"{BENCHMARK}/entities")


def facts(
    graph: Graph, own: Table, chosen: pl.DataFrame, settings: AttributeSettings[EntityCentric]
) -> pl.DataFrame:
    """(e, s, p, o) of `facts` edges of every chosen entity, by hash."""
    some = own.semi_join(graph.engine.table(chosen.select("e")), "e").drop("labelled")
    n, ids = settings.own.facts, ["s", "p", "o"]
    return graph.frame(graph.smallest(some, n, settings.seed, ids, ["e"], BENCHMARK))


def usable_edges(
    graph: Graph,
    own: Table,
    chosen: pl.DataFrame,
    settings: AttributeSettings[EntityCentric],
    steps: Funnel,
) -> tuple[Table, pl.DataFrame]:
    """Usable edges (labels, templates) of the chosen entities, and (e, n) of those with enough."""
    named = own.filter(own["labelled"])
    counts = graph.frame(engine.counted(own, ["p"], labelled=own["labelled"].sum()))
    counts = counts.cast(pl.Int64)
    total = int(counts["labelled"].sum())
    steps.kept("facts with labels", total, int(counts["n"].sum()), NO_LABEL)
    known = settings.templates
    if known is not None and settings.shared.missing_template == "drop":
        legal = graph.ids.templated(known)
        lost = counts.filter(~pl.col("p").is_in(legal) & (pl.col("labelled") > 0)).sort(
            "labelled", "p", descending=[True, False]
        )  # fmt: skip
        told = (f"{graph.ids.relation(p)} ({n})" for p, n in lost.select("p", "labelled").rows())
        why = "no template: " + ", ".join(told)
        steps.kept("facts with a template", total - int(lost["labelled"].sum()), total, why)
        named = named.filter(named["p"].isin(legal))
    least = 1 if settings.own.allow_short else settings.own.facts
    each = graph.frame(engine.counted(named, ["e"])).filter(pl.col("n") >= least)
    why = f"fewer than {least} usable facts"
    steps.kept("entities with enough usable facts", each.height, chosen.height, why)
    require(each.height, BENCHMARK, settings, steps)
    return named, each


def demand(rows: pl.DataFrame, graph: Graph, settings: AttributeSettings[EntityCentric]) -> None:
    """Raise MissingTemplatesError for sampled predicates without a template."""
    if settings.templates is None or not settings.shared.require_labels:
        return
    counts = dict(rows.filter("sampled")["p"].value_counts().rows())
    refuse_missing(
        BENCHMARK, {graph.ids.relation(p): n for p, n in counts.items()}, settings.templates
    )


def _long(graph: Graph, rows: pl.DataFrame) -> pl.DataFrame:
    """Long rows of numbers, as `lengthen` gives them."""
    order = rows.sort("e", "p", "s", "o")
    predicate = graph.ids.relations("p")
    return order.select(
        pl.lit(BENCHMARK).alias("benchmark"),
        pl.concat_list(pl.col("e").cast(pl.UInt64)).alias("ids"),
        predicate.alias("pattern"),
        pl.int_range(pl.len(), dtype=pl.Int32).over("e").alias("position"),
        pl.lit("fact").alias("role"),
        pl.lit("stored").alias("origin"),
        pl.col("s").cast(pl.UInt64),
        predicate.alias("predicate"),
        pl.col("o").cast(pl.UInt64),
        pl.lit([], dtype=pl.List(pl.String)).alias("flags"),
        "sampled",
    )


def _patterns(
    graph: Graph, candidates: pl.DataFrame, structural: pl.DataFrame, rows: pl.DataFrame
) -> pl.DataFrame:
    """PATTERNS; counts are facts, since an example has several relations."""
    frame = candidates.select("p", pl.col("n").alias("candidates"))
    parts = {"structural": structural, "examples": rows, "sampled": rows.filter("sampled")}
    for name, part in parts.items():
        frame = frame.join(part.group_by("p").agg(pl.len().alias(name)), on="p", how="left")
    numbers = [pl.col(c).fill_null(0).cast(pl.Int64) for c in ("candidates", *parts)]
    return frame.with_columns(
        numbers, pattern=graph.ids.relations("p"), benchmark=pl.lit(BENCHMARK)
    ).select(list(PATTERNS.columns))
