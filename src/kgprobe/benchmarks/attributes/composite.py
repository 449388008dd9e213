"""Composite: (a, r1, b), (b, r2, c) and (a, r3, c) close a triangle (kg_attributes.md, 3.3)."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from kgprobe.benchmarks.attributes.examples import Chooser, Shape, Triple, require
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
from kgprobe.settings import Composite

SHAPE = Shape(
    "composite",
    ("r1", "r2", "r3"),
    "P{}>P{}=P{}",
    ("a", "b", "c"),
    (
        Triple("first", "a", "r1", "b"),
        Triple("second", "b", "r2", "c"),
        Triple("closing", "a", "r3", "c"),
    ),
)


def build(graph: Graph, settings: Settings[Composite]) -> Built:
    """Triangles of members of the most frequent categories.

    At most `cap` of every combination of relations with `min_combo` or more; the rarer ones whole
    (`keep_rare`: Table 1's 1,118 combinations of 45 triples prove it); `fallback` random ones when
    no combination is frequent.
    """
    steps = Funnel(SHAPE.benchmark)
    found = candidates(graph, settings, steps)
    choose = chooser(found.counts, settings)
    picked = pick_collected(SHAPE, found, settings, steps, choose)
    return built(SHAPE, picked, graph, settings, steps, found.counts)


def candidates(graph: Graph, settings: Settings[Composite], steps: Funnel) -> Collected:
    """Counts of all combinations, and the (r1, r2, r3, a, b, c) that a cap chooses from."""
    inside = category_members(graph, settings, steps)
    whole, bounded = expandable(SHAPE, graph, settings, steps)
    starts = np.unique(bounded.s) if settings.own.member == "any" else inside
    low, high = bounded.out(starts)
    rows, first = ranges(low, high)
    parts = parts_of((high - low)[rows], settings.shared, SHAPE.benchmark)
    triangles = _triangles(whole, bounded, first, low[rows], high[rows], parts)
    members_only = (_restricted(part, inside, settings.own.member) for part in triangles)
    keep = max(settings.own.cap, settings.own.min_combo)
    labelled, templated = usable_filters(SHAPE, graph, settings)
    if not parts:
        require(pl.DataFrame(), SHAPE.benchmark, settings, steps)
    found = collect(SHAPE, members_only, len(parts), keep, settings.seed, labelled, templated)
    steps.kept("triangles", int(found.counts["n"].sum()))
    return found


def category_members(graph: Graph, settings: Settings[Composite], steps: Funnel) -> np.ndarray:
    """Sorted members of the top categories."""
    relations = numbers(settings.own.category_relations)
    chosen = categories(graph, settings.own.categories, relations)
    shown = ", ".join(f"Q{c} ({n:,})" for c, n in chosen.rows())
    found = members(graph, chosen, relations)
    steps.kept("categories", chosen.height, None, shown)
    steps.kept("members", found["member"].n_unique())
    require(found, "categories", settings, steps)
    return np.unique(found["member"].to_numpy()).astype(np.uint64)


def _triangles(
    whole: Adjacency,
    bounded: Adjacency,
    first: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    parts: list[slice],
) -> Iterator[pl.DataFrame]:
    """(r1, r2, r3, a, b, c) of every part: out(a) x out(a), closed by an edge from b to c."""
    for part in parts:
        rows, second = ranges(low[part], high[part])
        one = first[part][rows]
        b, c = bounded.o[one], bounded.o[second]
        apart = np.flatnonzero(b != c)
        hit, closing = whole.between(b[apart], c[apart])
        chosen = apart[hit]
        yield pl.DataFrame(
            {
                "r1": bounded.p[one[chosen]],
                "r2": whole.p[closing],
                "r3": bounded.p[second[chosen]],
                "a": bounded.s[one[chosen]].astype(np.uint32),
                "b": b[chosen].astype(np.uint32),
                "c": c[chosen].astype(np.uint32),
            }
        )


def _restricted(part: pl.DataFrame, inside: np.ndarray, member: str) -> pl.DataFrame:
    """Triangles whose a (always so), all three, or one of the three (`any`) are members."""
    if member == "a":
        return part
    within = {c: pl.Series(np.isin(part[c].to_numpy(), inside)) for c in ("a", "b", "c")}
    if member == "all":
        # a is one: triangles start at members
        return part.filter(within["b"] & within["c"])
    return part.filter(within["a"] | within["b"] | within["c"])


def chooser(counts: pl.DataFrame, settings: Settings[Composite]) -> Chooser:
    """Frequent combinations capped, rare ones whole, or random ones when none is frequent."""
    return frequent_or_fallback(SHAPE, counts, settings, settings.own.fallback, ())
