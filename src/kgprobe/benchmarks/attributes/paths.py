"""Paths: (a, r1, b), (b, r2, c), two hops from members of popular categories."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.chains import (
    edges_to_expand,
    frequent_or_fallback,
    top_categories,
)
from kgprobe.benchmarks.attributes.construct import BuiltAttribute, construct
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph, members
from kgprobe.settings.benchmarks import Paths

TRIPLES = (Triple("hop1", "a", "r1", "b"), Triple("hop2", "b", "r2", "c"))
DEFINITION = Definition("paths", ("r1", "r2"), "{}>{}", ("a", "b", "c"), TRIPLES, is_chain=True)


def build(graph: Graph, settings: AttributeSettings[Paths]) -> BuiltAttribute:
    """Build two-hop paths from `seeds` members of each of the top categories.

    At most `cap` of every pair of relations with `min_combo` or more; all of the rarer ones
    (`keep_rare`); `fallback_per_entity` random paths of each seed if no pair is frequent.
    `count_on` says if frequencies are counted on the paths of the seeds or of all members.
    """
    setup = Setup(DEFINITION, graph, settings)
    paths = query(setup)
    counts = graph.frame(count_rows(paths, DEFINITION.relations))
    setup.count("paths", int(counts["n"].sum()))
    if setup.section.count_on == "graph":
        counts = count_paths(graph, settings)
    sample = frequent_or_fallback(setup, counts, setup.section.fallback_per_entity, ("a",))
    return construct(setup, paths, sample)


def query(setup: Setup[Paths]) -> Table:
    """Return (r1, r2, a, b, c) of all paths of two edges that start at a seed."""
    engine, section = setup.engine, setup.section
    seeds = seed_entities(setup)
    _, edges = edges_to_expand(setup)
    one = edges.semi_join(engine.table(seeds), [("s", "member")])
    one = engine.keep(one.select(a="s", r1="p", b="o"))
    paths = edges.select(b="s", r2="p", c="o").inner_join(one, "b")
    if section.endpoints_differ:
        paths = paths.filter(paths["a"] != paths["c"])
    if section.relations_differ:
        paths = paths.filter(paths["r1"] != paths["r2"])
    return engine.keep(paths.select("r1", "r2", "a", "b", "c"))


def seed_entities(setup: Setup[Paths]) -> pl.DataFrame:
    """Return the distinct (member): `seeds` members of each category, by hash."""
    graph, section = setup.graph, setup.section
    total = int(top_categories(setup)["members"].sum())
    relations = graph.relations.numbers(section.category_relations)
    rows = members(graph, section.categories, relations)
    by, label = ["category"], "paths/seeds"
    drawn = graph.smallest(rows, section.seeds, setup.seed, ["member"], by, label)
    seeds = graph.frame(drawn)
    setup.count("seeds", seeds.height, total, f"beyond {section.seeds} of a category")
    setup.require(seeds.height)
    return seeds.select("member").unique().sort("member")


def count_paths(graph: Graph, settings: AttributeSettings[Paths]) -> pl.DataFrame:
    """Return (r1, r2, n): the number of paths from all members, without building them.

    Edges of members are grouped by (r1, b), all edges by (b, r2), multiplied and summed over b;
    then paths that return to a are subtracted, and pairs of one relation dropped.
    """
    section = settings.section
    relations = graph.relations.numbers(section.category_relations)
    inside = members(graph, section.categories, relations).select("member").distinct()
    edges = graph.without(graph.relations.numbers(section.exclude))
    starts = graph.engine.keep(edges.semi_join(inside, [("s", "member")]))
    into = starts.group_by(b="o", r1="p").aggregate(k=starts.count())
    out = edges.group_by(b="s", r2="p").aggregate(m=edges.count())
    both = out.inner_join(into, "b")
    n = (both["k"] * both["m"]).sum().cast("int64")
    paths = graph.frame(both.group_by("r1", "r2").aggregate(n=n))
    if section.endpoints_differ:
        back = edges.select(_s="o", _o="s", r2="p")
        cycles = back.inner_join(starts.rename(r1="p"), [("_s", "s"), ("_o", "o")])
        returning = graph.frame(count_rows(cycles, ["r1", "r2"])).rename({"n": "k"})
        paths = paths.join(returning, on=["r1", "r2"], how="left").select(
            "r1", "r2", n=pl.col("n") - pl.col("k").fill_null(0)
        )
    if section.relations_differ:
        paths = paths.filter(pl.col("r1") != pl.col("r2"))
    return paths.filter(pl.col("n") > 0).sort("r1", "r2")
