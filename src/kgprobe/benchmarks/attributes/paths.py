"""Paths: (a, r1, b), (b, r2, c), two hops from members of popular categories (section 3.3)."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from kgprobe.benchmarks.attributes.examples import Shape, Triple, require
from kgprobe.benchmarks.attributes.graph import Graph, categories, members, numbers
from kgprobe.benchmarks.attributes.items import Built, built
from kgprobe.benchmarks.attributes.patterns import (
    frequent_or_fallback,
    pick_collected,
    usable_filters,
)
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.attributes.wedges import (
    Adjacency,
    Collected,
    collect,
    expandable,
    parts_of,
    ranges,
)
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.sampling import smallest
from kgprobe.settings import Paths

SHAPE = Shape(
    "paths",
    ("r1", "r2"),
    "P{}>P{}",
    ("a", "b", "c"),
    (Triple("hop1", "a", "r1", "b"), Triple("hop2", "b", "r2", "c")),
)


def build(graph: Graph, settings: Settings[Paths]) -> Built:
    """Two-hop paths from `seeds` members of each of the top categories.

    At most `cap` of every pair of relations with `min_combo` or more; the rarer ones whole
    (`keep_rare`); `fallback_per_entity` random paths of each seed when no pair is frequent.
    `count_on` says whether "frequent" is counted on the paths of the seeds or of all members.
    """
    steps = Funnel(SHAPE.benchmark)
    found = candidates(graph, settings, steps)
    counts = found.counts
    if settings.own.count_on == "graph":
        counts = count_paths(graph, settings)
    per_entity = settings.own.fallback_per_entity
    choose = frequent_or_fallback(SHAPE, counts, settings, per_entity, ("a",))
    picked = pick_collected(SHAPE, found, settings, steps, choose)
    return built(SHAPE, picked, graph, settings, steps, found.counts)


def candidates(graph: Graph, settings: Settings[Paths], steps: Funnel) -> Collected:
    """Counts of all pairs of relations, and the candidates (r1, r2, a, b, c) to choose from."""
    seeds = seed_entities(graph, settings, steps)
    _, bounded = expandable(SHAPE, graph, settings, steps)
    _, first = ranges(*bounded.out(seeds))
    low, high = bounded.out(bounded.o[first])
    parts = parts_of(high - low, settings.shared, SHAPE.benchmark)
    if not parts:
        require(pl.DataFrame(), SHAPE.benchmark, settings, steps)
    paths = _paths(bounded, first, low, high, parts, settings)
    # rare pairs are kept whole: as many as are below min_combo, of all members or of the seeds
    keep = max(settings.own.cap, settings.own.min_combo)
    labelled, templated = usable_filters(SHAPE, graph, settings)
    found = collect(SHAPE, paths, len(parts), keep, settings.seed, labelled, templated)
    steps.kept("paths", int(found.counts["n"].sum()))
    return found


def seed_entities(graph: Graph, settings: Settings[Paths], steps: Funnel) -> np.ndarray:
    """`seeds` members of each category by hash; one array for all, sorted."""
    relations = numbers(settings.own.category_relations)
    chosen = categories(graph, settings.own.categories, relations)
    shown = ", ".join(f"Q{c} ({n:,})" for c, n in chosen.rows())
    steps.kept("categories", chosen.height, None, shown)
    inside = members(graph, chosen, relations)
    seeds = smallest(
        inside, settings.own.seeds, settings.seed, ["member"], ["category"], "paths/seeds"
    )
    why = f"beyond {settings.own.seeds} of a category"
    steps.kept("seeds", seeds.height, inside.height, why)
    require(seeds, SHAPE.benchmark, settings, steps)
    return np.unique(seeds["member"].to_numpy()).astype(np.uint64)


def _paths(
    edges: Adjacency,
    first: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    parts: list[slice],
    settings: Settings[Paths],
) -> Iterator[pl.DataFrame]:
    """(r1, r2, a, b, c) of every part."""
    for part in parts:
        rows, second = ranges(low[part], high[part])
        one = first[part][rows]
        frame = pl.DataFrame(
            {
                "r1": edges.p[one],
                "r2": edges.p[second],
                "a": edges.s[one].astype(np.uint32),
                "b": edges.o[one].astype(np.uint32),
                "c": edges.o[second].astype(np.uint32),
            }
        )
        if settings.own.endpoints_differ:
            frame = frame.filter(pl.col("a") != pl.col("c"))
        if settings.own.relations_differ:
            frame = frame.filter(pl.col("r1") != pl.col("r2"))
        yield frame


def count_paths(graph: Graph, settings: Settings[Paths]) -> pl.DataFrame:
    """(r1, r2, n): all paths from all members, counted without building one.

    Edges of members grouped by (r1, b), all edges by (b, r2), multiplied and summed over b; paths
    that return to a are then subtracted, pairs of one relation left out.
    """
    relations = numbers(settings.own.category_relations)
    inside = members(graph, categories(graph, settings.own.categories, relations), relations)
    edges = graph.without(numbers(settings.own.exclude)).lazy()
    starts = edges.join(inside.lazy().select(s="member").unique(), on="s", how="semi")
    into = starts.group_by(b="o", r1="p").agg(pl.len().cast(pl.Int64).alias("k"))
    out = edges.group_by(b="s", r2="p").agg(pl.len().cast(pl.Int64).alias("m"))
    product = (pl.col("k") * pl.col("m")).sum().alias("n")
    counted = into.join(out, on="b").group_by("r1", "r2").agg(product)
    if settings.own.endpoints_differ:
        back = edges.select(s="o", o="s", r2="p")
        cycles = starts.rename({"p": "r1"}).join(back, on=["s", "o"]).group_by("r1", "r2")
        returned = cycles.agg(pl.len().cast(pl.Int64).alias("k"))
        counted = counted.join(returned, on=["r1", "r2"], how="left").select(
            "r1", "r2", n=pl.col("n") - pl.col("k").fill_null(0)
        )
    if settings.own.relations_differ:
        counted = counted.filter(pl.col("r1") != pl.col("r2"))
    found = counted.filter(pl.col("n") > 0).collect(engine="streaming")
    return found.sort("r1", "r2")
