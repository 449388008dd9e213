"""Entity-centric: `facts` facts of a well-connected entity (kg_attributes.md, section 3.3)."""

import polars as pl

from kgprobe.benchmarks.attributes.examples import (
    NO_LABEL,
    refuse_missing,
    require,
    with_labels,
)
from kgprobe.benchmarks.attributes.frames import LAMA, PATTERNS
from kgprobe.benchmarks.attributes.graph import Graph, numbers
from kgprobe.benchmarks.attributes.items import Built, assembled
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.sampling import smallest
from kgprobe.settings import EntityCentric

BENCHMARK = "entity_centric"


def build(graph: Graph, settings: Settings[EntityCentric]) -> Built:
    """`entities` of the `top` entities by degree, each with `facts` of its edges by hash.

    The paper gives 20 facts; 270 entities follow from its 5,406 triples, 50 probed ones from the
    grid of its scores. An entity needs that many out-edges (`allow_short`: fewer will do).
    """
    steps = Funnel(BENCHMARK)
    edges = entity_edges(graph, settings)
    steps.kept("edges", edges.height)
    chosen = candidates(graph, edges, settings, steps)
    structural = facts(edges, entities(chosen, settings.own.entities, settings), settings)
    steps.kept("structural build: facts", structural.height)
    usable, named = edges, chosen
    if settings.shared.require_labels:
        usable, named = usable_edges(graph, edges, chosen, settings, steps)
    taken = entities(named, settings.own.entities, settings)
    probed = entities(taken, settings.own.eval_entities, settings)
    rows = facts(usable, taken, settings)
    steps.kept("entities", taken.height, named.height, "beyond the sample")
    steps.kept("facts", rows.height)
    require(rows, BENCHMARK, settings, steps)
    steps.kept("evaluation sample", probed.height, taken.height, "beyond the evaluation sample")
    rows = rows.join(
        probed.select("e", sampled=pl.lit(True)), on="e", how="left"
    ).with_columns(pl.col("sampled").fill_null(False))  # fmt: skip
    demand(rows, settings)
    structural = structural.with_columns(sampled=pl.lit(False))
    patterns = _patterns(edges.join(chosen, on="e", how="semi"), structural, rows)
    return assembled(BENCHMARK, _long(rows), _long(structural), patterns, graph, settings, steps)


def entity_edges(graph: Graph, settings: Settings[EntityCentric]) -> pl.DataFrame:
    """(e, s, p, o): the edges that are facts of entity e, as subject, or as object, too."""
    edges = graph.without(numbers(settings.own.exclude))
    if settings.own.relations == "lama":
        edges = edges.filter(pl.col("p").is_in(list(LAMA)))
    out = edges.select(pl.col("s").alias("e"), "s", "p", "o")
    if settings.own.directions == "out":
        return out
    return pl.concat([out, edges.select(pl.col("o").alias("e"), "s", "p", "o")])


def candidates(
    graph: Graph, edges: pl.DataFrame, settings: Settings[EntityCentric], steps: Funnel
) -> pl.DataFrame:
    """(e, n): the `top` entities by degree, ties to the lower id, of those with enough facts."""
    n = edges.group_by("e").agg(pl.len().alias("n"))
    least = 1 if settings.own.allow_short else settings.own.facts
    enough = n.filter(pl.col("n") >= least)
    steps.kept("entities with enough facts", enough.height, n.height, f"fewer than {least} facts")
    require(enough, BENCHMARK, settings, steps)
    degree = graph.entities.select(pl.col("id").alias("e"), "degree")
    order = enough.join(degree, on="e").sort("degree", "e", descending=[True, False])
    top = order.head(settings.own.top)
    steps.kept("top by degree", top.height, order.height, f"beyond the top {settings.own.top}")
    return top.select("e", "n")


def entities(frame: pl.DataFrame, n: int, settings: Settings[EntityCentric]) -> pl.DataFrame:
    """`n` entities by hash; a smaller sample is a part of a larger one."""
    return smallest(frame, n, settings.seed, ["e"], (), f"{BENCHMARK}/entities")


def facts(
    edges: pl.DataFrame, chosen: pl.DataFrame, settings: Settings[EntityCentric]
) -> pl.DataFrame:
    """(e, s, p, o) of `facts` edges of every chosen entity, by hash."""
    own = edges.join(chosen.select("e"), on="e", how="semi")
    return smallest(own, settings.own.facts, settings.seed, ["s", "p", "o"], ["e"], BENCHMARK)


def usable_edges(
    graph: Graph,
    edges: pl.DataFrame,
    chosen: pl.DataFrame,
    settings: Settings[EntityCentric],
    steps: Funnel,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Usable edges (labels, templates) of the chosen entities, and entities with enough."""
    own = edges.join(chosen.select("e"), on="e", how="semi")
    named = with_labels(own, ["s", "o"], graph)
    steps.kept("facts with labels", named.height, own.height, NO_LABEL)
    known = settings.templates
    if known is not None and settings.shared.missing_template == "drop":
        legal = [int(name[1:]) for name in known if "/" not in name]
        worded = named.filter(pl.col("p").is_in(legal))
        lost = named.filter(~pl.col("p").is_in(legal))["p"].value_counts().sort(
            "count", "p", descending=[True, False]
        )  # fmt: skip
        why = "no template: " + ", ".join(f"P{p} ({n})" for p, n in lost.rows())
        steps.kept("facts with a template", worded.height, named.height, why)
        named = worded
    least = 1 if settings.own.allow_short else settings.own.facts
    counted = named.group_by("e").agg(pl.len().alias("n")).filter(pl.col("n") >= least)
    why = f"fewer than {least} usable facts"
    steps.kept("entities with enough usable facts", counted.height, chosen.height, why)
    require(counted, BENCHMARK, settings, steps)
    return named, counted


def demand(rows: pl.DataFrame, settings: Settings[EntityCentric]) -> None:
    """Raise MissingTemplatesError for sampled predicates without a template."""
    if settings.templates is None or not settings.shared.require_labels:
        return
    counts = dict(rows.filter("sampled")["p"].value_counts().rows())
    refuse_missing(BENCHMARK, {f"P{p}": n for p, n in counts.items()}, settings.templates)


def _long(rows: pl.DataFrame) -> pl.DataFrame:
    """Long rows of numbers, as `lengthen` gives them."""
    order = rows.sort("e", "p", "s", "o")
    predicate = pl.format("P{}", "p")
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
    candidates: pl.DataFrame, structural: pl.DataFrame, rows: pl.DataFrame
) -> pl.DataFrame:
    """PATTERNS; counts are facts, since an example has several relations."""
    frame = candidates.group_by("p").agg(pl.len().alias("candidates"))
    parts = {"structural": structural, "examples": rows, "sampled": rows.filter("sampled")}
    for name, part in parts.items():
        frame = frame.join(part.group_by("p").agg(pl.len().alias(name)), on="p", how="left")
    numbers = [pl.col(c).fill_null(0).cast(pl.Int64) for c in ("candidates", *parts)]
    return frame.with_columns(
        numbers, pattern=pl.format("P{}", "p"), benchmark=pl.lit(BENCHMARK)
    ).select(list(PATTERNS.columns))
