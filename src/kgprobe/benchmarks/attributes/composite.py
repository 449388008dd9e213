"""Composite: (a, r1, b), (b, r2, c) and (a, r3, c) close a triangle."""

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
from kgprobe.settings.benchmarks import Composite

HOPS = (Triple("first", "a", "r1", "b"), Triple("second", "b", "r2", "c"))
TRIPLES = (*HOPS, Triple("closing", "a", "r3", "c"))
RELATIONS, ENTITIES = ("r1", "r2", "r3"), ("a", "b", "c")
DEFINITION = Definition("composite", RELATIONS, "{}>{}={}", ENTITIES, TRIPLES, is_chain=True)


def build(graph: Graph, settings: AttributeSettings[Composite]) -> BuiltAttribute:
    """Build triangles of members of the most frequent categories.

    At most `cap` of every combination of relations with `min_combo` or more; all of the rarer ones
    (`keep_rare`: Table 1's 1,118 combinations of 45 triples prove it); `fallback` random ones if
    no combination is frequent.
    """
    setup = Setup(DEFINITION, graph, settings)
    triangles = query(setup)
    counts = graph.frame(count_rows(triangles, DEFINITION.relations))
    setup.count("triangles", int(counts["n"].sum()))
    sample = frequent_or_fallback(setup, counts, setup.section.fallback, ())
    return construct(setup, triangles, sample)


def query(setup: Setup[Composite]) -> Table:
    """Return (r1, r2, r3, a, b, c) of all triangles of members: out(a) x out(a), with edge b-c."""
    engine, member = setup.engine, setup.section.member
    inside = category_members(setup)
    whole, bounded = edges_to_expand(setup)
    starts = bounded
    if member != "any":
        starts = engine.keep(bounded.semi_join(inside, [("s", "member")]), shared=True)
    pairs = starts.select(a="s", r1="p", b="o").inner_join(starts.select(a="s", r3="p", c="o"), "a")
    pairs = pairs.filter(pairs["b"] != pairs["c"])
    closing = whole.select(_b="s", r2="p", _c="o")
    triangles = pairs.inner_join(closing, [("b", "_b"), ("c", "_c")])
    triangles = triangles.select("r1", "r2", "r3", "a", "b", "c")
    if member == "all":
        # a is already one, because triangles start at members
        for end in ("b", "c"):
            triangles = triangles.semi_join(inside, [(end, "member")])
    if member == "any":
        for end in ("a", "b", "c"):
            known = inside.select(**{f"_{end}": "member"})
            triangles = triangles.left_join(known, [(end, f"_{end}")])
        some = triangles["_a"].notnull() | triangles["_b"].notnull() | triangles["_c"].notnull()
        triangles = triangles.filter(some).select("r1", "r2", "r3", "a", "b", "c")
    return engine.keep(triangles, shared=True)


def category_members(setup: Setup[Composite]) -> Table:
    """Return the distinct (member) of the top categories."""
    top_categories(setup)
    relations = setup.graph.relations.numbers(setup.section.category_relations)
    rows = members(setup.graph, setup.section.categories, relations).select("member").distinct()
    rows = setup.engine.keep(rows, shared=True)
    n = setup.engine.count(rows)
    setup.count("members", n)
    setup.require(n)
    return rows
