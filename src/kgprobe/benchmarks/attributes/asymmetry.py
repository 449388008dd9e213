"""Asymmetry: (s, r, o) holds and (o, r, s) does not (docs/papers/attributes.md, Benchmarks)."""

import polars as pl
from ibis import union
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import Shape, TripleColumns, capped, flag, pick
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.attributes.symmetry import counts
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Asymmetry

SHAPE = Shape(
    "asymmetry",
    ("p",),
    "{}",
    ("s", "o"),
    (TripleColumns("forward", "s", "p", "o"), TripleColumns("reversed", "o", "p", "s", "reversed")),
)


def build(graph: Graph, settings: AttributeSettings[Asymmetry]) -> AttributeSet:
    """Triples whose reverse is absent, each with its reversal as a probe that should fail.

    Of predicates with at least `min_triples` triples, literals included, of which a share of
    `ratio` or more is not symmetric; `strict` demands all. At most `cap` of each predicate.
    """
    steps = Funnel(SHAPE.benchmark)
    triples = candidates(graph, settings, steps)
    choose = capped(SHAPE, settings.own.cap, graph, settings)
    picked = pick(SHAPE, triples, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(SHAPE, picked, graph, settings, steps)


def candidates(graph: Graph, settings: AttributeSettings[Asymmetry], steps: Funnel) -> Table:
    """(p, s, o, flag): one-way triples; `o` is the code of a literal where it is below 0.

    The flag reverse_unknown stands where the predicate has any symmetric triple: in an open world
    a missing edge is not a false one.
    """
    literals = graph.literals if settings.shared.literals else graph.literals.limit(0)
    dated = graph.frame(counted(literals, ["p"]))
    total = graph.size + int(dated["n"].sum())
    steps.kept("edges and literals", total)
    every = pl.concat([graph.sizes, dated]).group_by("p").agg(pl.col("n").sum())
    relations = counts(graph, every)
    enough = relations.filter(pl.col("n") >= settings.own.min_triples)
    steps.kept(
        "predicates: min_triples",
        enough.height,
        relations.height,
        f"n < {settings.own.min_triples}",
    )
    kept = enough.filter(1 - pl.col("ns") / pl.col("n") >= settings.own.ratio)
    if settings.own.strict:
        kept = kept.filter(pl.col("ns") == 0)
    why = f"asymmetric share < {settings.own.ratio}" + (" or not 1" if settings.own.strict else "")
    steps.kept("predicates: ratio", kept.height, enough.height, why)
    both_kinds = kept.filter(pl.col("ns") / pl.col("n") >= settings.own.ratio)
    listed = ", ".join(graph.ids.relation(p) for p in both_kinds["p"])
    steps.kept("of them symmetric enough, too", both_kinds.height, None, listed)
    one_way = total - int(relations["ns"].sum())
    steps.kept("reverse absent", one_way, total, "(o, r, s) is an edge")
    passed = int((kept["n"] - kept["ns"]).sum())
    steps.kept("triples", passed, one_way, "predicate below a threshold")
    edges = graph.edges.anti_join(graph.mutual, ["p", "s", "o"])
    both = (part.select("p", "s", o=part["o"].cast("int64")) for part in (edges, literals))
    found = union(*both).inner_join(graph.engine.table(kept.select("p", "ns")), "p")
    return found.select("p", "s", "o", flag=flag("reverse_unknown", found["ns"] > 0))
