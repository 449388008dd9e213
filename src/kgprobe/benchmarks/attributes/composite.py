"""Composite: (a, r1, b), (b, r2, c) and (a, r3, c) close a triangle."""

from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.chains import (
    edges_to_expand,
    frequent_or_fallback,
    top_categories,
)
from kgprobe.benchmarks.attributes.construct import Benchmark, construct, require
from kgprobe.benchmarks.attributes.examples import Definition, Triple
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph, members
from kgprobe.settings import Composite

DEFINITION = Definition(
    "composite",
    ("r1", "r2", "r3"),
    "{}>{}={}",
    ("a", "b", "c"),
    (
        Triple("first", "a", "r1", "b"),
        Triple("second", "b", "r2", "c"),
        Triple("closing", "a", "r3", "c"),
    ),
    is_chain=True,
)


def build(graph: Graph, settings: AttributeSettings[Composite]) -> Benchmark:
    """Triangles of members of the most frequent categories.

    At most `cap` of every combination of relations with `min_combo` or more; the rarer ones whole
    (`keep_rare`: Table 1's 1,118 combinations of 45 triples prove it); `fallback` random ones when
    no combination is frequent.
    """
    funnel = Funnel("composite")
    triangles = query(graph, settings, funnel)
    counts = graph.frame(count_rows(triangles, DEFINITION.relations))
    funnel.count("triangles", int(counts["n"].sum()))
    fallback = settings.section.fallback
    sample = frequent_or_fallback(DEFINITION, graph, counts, settings, fallback, ())
    evaluate = settings.shared.eval_examples
    return construct(DEFINITION, triangles, graph, settings, funnel, sample, evaluate)


def query(graph: Graph, settings: AttributeSettings[Composite], funnel: Funnel) -> Table:
    """(r1, r2, r3, a, b, c) of all triangles of members: out(a) x out(a), closed from b to c."""
    engine, member = graph.engine, settings.section.member
    inside = category_members(graph, settings, funnel)
    whole, bounded = edges_to_expand("composite", graph, settings, funnel)
    starts = bounded
    if member != "any":
        starts = engine.keep(bounded.semi_join(inside, [("s", "member")]), shared=True)
    pairs = starts.select(a="s", r1="p", b="o").inner_join(starts.select(a="s", r3="p", c="o"), "a")
    pairs = pairs.filter(pairs["b"] != pairs["c"])
    closing = whole.select(_b="s", r2="p", _c="o")
    triangles = pairs.inner_join(closing, [("b", "_b"), ("c", "_c")])
    triangles = triangles.select("r1", "r2", "r3", "a", "b", "c")
    if member == "all":
        # a is one: triangles start at members
        for end in ("b", "c"):
            triangles = triangles.semi_join(inside, [(end, "member")])
    if member == "any":
        for end in ("a", "b", "c"):
            known = inside.select(**{f"_{end}": "member"})
            triangles = triangles.left_join(known, [(end, f"_{end}")])
        some = triangles["_a"].notnull() | triangles["_b"].notnull() | triangles["_c"].notnull()
        triangles = triangles.filter(some).select("r1", "r2", "r3", "a", "b", "c")
    return engine.keep(triangles, shared=True)


def category_members(graph: Graph, settings: AttributeSettings[Composite], funnel: Funnel) -> Table:
    """(member) of the top categories, each once."""
    top_categories(graph, settings, funnel)
    relations = graph.relations.numbers(settings.section.category_relations)
    rows = members(graph, settings.section.categories, relations).select("member").distinct()
    rows = graph.engine.keep(rows, shared=True)
    n = graph.engine.count(rows)
    funnel.count("members", n)
    require(n, "categories", settings, funnel)
    return rows
