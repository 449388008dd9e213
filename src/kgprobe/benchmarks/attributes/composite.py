"""Composite: (a, r1, b), (b, r2, c) and (a, r3, c) close a triangle."""

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
from kgprobe.settings import Composite

SHAPE = Shape(
    "composite",
    ("r1", "r2", "r3"),
    "{}>{}={}",
    ("a", "b", "c"),
    (
        TripleColumns("first", "a", "r1", "b"),
        TripleColumns("second", "b", "r2", "c"),
        TripleColumns("closing", "a", "r3", "c"),
    ),
    chain=True,
)


def build(graph: Graph, settings: AttributeSettings[Composite]) -> AttributeSet:
    """Triangles of members of the most frequent categories.

    At most `cap` of every combination of relations with `min_combo` or more; the rarer ones whole
    (`keep_rare`: Table 1's 1,118 combinations of 45 triples prove it); `fallback` random ones when
    no combination is frequent.
    """
    steps = Funnel(SHAPE.benchmark)
    found = candidates(graph, settings, steps)
    counts = graph.frame(counted(found, SHAPE.strata))
    steps.kept("triangles", int(counts["n"].sum()))
    choose = frequent_or_fallback(SHAPE, graph, counts, settings, settings.own.fallback, ())
    evaluate = settings.shared.eval_examples
    picked = pick(SHAPE, found, graph, settings, steps, choose, evaluate)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: AttributeSettings[Composite], steps: Funnel) -> Table:
    """(r1, r2, r3, a, b, c) of all triangles of members: out(a) x out(a), closed from b to c."""
    own = settings.own
    inside = category_members(graph, settings, steps)
    whole, bounded = expandable(SHAPE, graph, settings, steps)
    what = (own.categories, own.category_relations, own.exclude, own.max_out, settings.seed)
    starts = bounded
    if own.member != "any":
        starts = graph.once(("starts", *what), bounded.semi_join(inside, [("s", "member")]))
    pairs = starts.select(a="s", r1="p", b="o").inner_join(starts.select(a="s", r3="p", c="o"), "a")
    pairs = pairs.filter(pairs["b"] != pairs["c"])
    closing = whole.select(_b="s", r2="p", _c="o")
    closed = pairs.inner_join(closing, [("b", "_b"), ("c", "_c")])
    found = closed.select("r1", "r2", "r3", "a", "b", "c")
    if own.member == "all":
        # a is one: triangles start at members
        for end in ("b", "c"):
            found = found.semi_join(inside, [(end, "member")])
    if own.member == "any":
        for end in ("a", "b", "c"):
            found = found.left_join(inside.select(**{f"_{end}": "member"}), [(end, f"_{end}")])
        some = found["_a"].notnull() | found["_b"].notnull() | found["_c"].notnull()
        found = found.filter(some).select("r1", "r2", "r3", "a", "b", "c")
    return graph.once(("triangles", own.member, *what), found)


def category_members(graph: Graph, settings: AttributeSettings[Composite], steps: Funnel) -> Table:
    """(member) of the top categories, each once."""
    chosen = top_categories(graph, settings, steps)
    relations = graph.ids.numbers(settings.own.category_relations)
    found = members(graph, chosen, relations).select("member").distinct()
    what = ("members", settings.own.categories, settings.own.category_relations)
    found = graph.once(what, found)
    n = graph.engine.numbers(found.aggregate(n=found.count()))["n"]
    steps.kept("members", n)
    require(n, "categories", settings, steps)
    return found
