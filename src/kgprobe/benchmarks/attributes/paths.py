"""Paths: (a, r1, b), (b, r2, c), two hops from members of popular categories."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import Shape, TripleColumns, pick, require
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.patterns import (
    expandable,
    frequent_or_fallback,
    top_categories,
)
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted
from kgprobe.knowledge.graph import Graph, members
from kgprobe.settings import Paths

SHAPE = Shape(
    "paths",
    ("r1", "r2"),
    "{}>{}",
    ("a", "b", "c"),
    (TripleColumns("hop1", "a", "r1", "b"), TripleColumns("hop2", "b", "r2", "c")),
    chain=True,
)


def build(graph: Graph, settings: AttributeSettings[Paths]) -> AttributeSet:
    """Two-hop paths from `seeds` members of each of the top categories.

    At most `cap` of every pair of relations with `min_combo` or more; the rarer ones whole
    (`keep_rare`); `fallback_per_entity` random paths of each seed when no pair is frequent.
    `count_on` says whether "frequent" is counted on the paths of the seeds or of all members.
    """
    steps = Funnel(SHAPE.benchmark)
    found = candidates(graph, settings, steps)
    counts = graph.frame(counted(found, SHAPE.strata))
    steps.kept("paths", int(counts["n"].sum()))
    if settings.own.count_on == "graph":
        counts = count_paths(graph, settings)
    per_entity = settings.own.fallback_per_entity
    choose = frequent_or_fallback(SHAPE, graph, counts, settings, per_entity, ("a",))
    evaluate = settings.shared.eval_examples
    picked = pick(SHAPE, found, graph, settings, steps, choose, evaluate)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: AttributeSettings[Paths], steps: Funnel) -> Table:
    """(r1, r2, a, b, c) of all paths of two edges that begin at a seed."""
    own = settings.own
    seeds = seed_entities(graph, settings, steps)
    _, bounded = expandable(SHAPE, graph, settings, steps)
    one = bounded.semi_join(graph.engine.table(seeds), [("s", "member")])
    two = bounded.select(b="s", r2="p", c="o")
    found = two.inner_join(graph.engine.keep(one.select(a="s", r1="p", b="o")), "b")
    if own.endpoints_differ:
        found = found.filter(found["a"] != found["c"])
    if own.relations_differ:
        found = found.filter(found["r1"] != found["r2"])
    return graph.engine.keep(found.select("r1", "r2", "a", "b", "c"))


def seed_entities(graph: Graph, settings: AttributeSettings[Paths], steps: Funnel) -> pl.DataFrame:
    """(member): `seeds` members of each category by hash, each once."""
    chosen = top_categories(graph, settings, steps)
    relations, n = graph.ids.numbers(settings.own.category_relations), settings.own.seeds
    inside = members(graph, chosen, relations)
    drawn = graph.smallest(inside, n, settings.seed, ["member"], ["category"], "paths/seeds")
    seeds = graph.frame(drawn)
    total = int(chosen["members"].sum())
    steps.kept("seeds", seeds.height, total, f"beyond {n} of a category")
    require(seeds.height, SHAPE.benchmark, settings, steps)
    return seeds.select("member").unique().sort("member")


def count_paths(graph: Graph, settings: AttributeSettings[Paths]) -> pl.DataFrame:
    """(r1, r2, n): all paths from all members, counted without building one.

    Edges of members grouped by (r1, b), all edges by (b, r2), multiplied and summed over b; paths
    that return to a are then subtracted, pairs of one relation left out.
    """
    relations = graph.ids.numbers(settings.own.category_relations)
    chosen = top_categories(graph, settings, Funnel(SHAPE.benchmark))
    inside = members(graph, chosen, relations).select("member").distinct()
    edges = graph.without(graph.ids.numbers(settings.own.exclude))
    starts = graph.engine.keep(edges.semi_join(inside, [("s", "member")]))
    into = starts.group_by(b="o", r1="p").aggregate(k=starts.count())
    out = edges.group_by(b="s", r2="p").aggregate(m=edges.count())
    both = out.inner_join(into, "b")
    product = (both["k"] * both["m"]).sum().cast("int64")
    paths = graph.frame(both.group_by("r1", "r2").aggregate(n=product))
    if settings.own.endpoints_differ:
        back = edges.select(_s="o", _o="s", r2="p")
        cycles = back.inner_join(starts.rename(r1="p"), [("_s", "s"), ("_o", "o")])
        returned = graph.frame(counted(cycles, ["r1", "r2"])).rename({"n": "k"})
        paths = paths.join(returned, on=["r1", "r2"], how="left").select(
            "r1", "r2", n=pl.col("n") - pl.col("k").fill_null(0)
        )
    if settings.own.relations_differ:
        paths = paths.filter(pl.col("r1") != pl.col("r2"))
    return paths.filter(pl.col("n") > 0).sort("r1", "r2")
