"""Asymmetry: (s, r, o) holds and (o, r, s) does not (docs/papers/attributes.md, Benchmarks)."""

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.construct import BuiltAttribute, construct, flag
from kgprobe.benchmarks.attributes.definition import AttributeSettings, Definition, Setup, Triple
from kgprobe.benchmarks.attributes.symmetry import counts
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings.benchmarks import Asymmetry

TRIPLES = (Triple("forward", "s", "p", "o"), Triple("reversed", "o", "p", "s", "reversed"))
DEFINITION = Definition("asymmetry", ("p",), "{}", ("s", "o"), TRIPLES)


def build(graph: Graph, settings: AttributeSettings[Asymmetry]) -> BuiltAttribute:
    """Build triples whose reverse is absent, each with its reversal as a probe that should fail; at
    most `cap` of each predicate."""
    setup = Setup(DEFINITION, graph, settings)
    return construct(setup, query(setup), setup.section.cap)


def query(setup: Setup[Asymmetry]) -> Table:
    """Return (p, s, o, flag): one-way triples of predicates with at least `min_triples` triples,
    literals included, of which at least a proportion of `ratio` (`strict`: all) is asymmetric.

    The flag reverse_unknown marks predicates with any symmetric triple: in an open world a missing
    edge is not a false one.
    """
    graph, section = setup.graph, setup.section
    literals = graph.literals if setup.shared.literals else graph.literals.limit(0)
    of_literals = graph.frame(count_rows(literals, ["p"]))
    total = graph.size + int(of_literals["n"].sum())
    setup.count("edges and literals", total)
    sizes = pl.concat([graph.sizes, of_literals]).group_by("p").agg(pl.col("n").sum())
    relations = counts(graph, sizes)
    n, ns = pl.col("n"), pl.col("ns")
    enough = relations.filter(n >= section.min_triples)
    why = f"n < {section.min_triples}"
    setup.count("predicates: min_triples", enough.height, relations.height, why)
    # 1 - 4/5 is less than 0.2 in floating point
    kept = enough.filter((n - ns) / n >= section.ratio)
    if section.strict:
        kept = kept.filter(ns == 0)
    why = f"asymmetric share < {section.ratio}" + (" or not 1" if section.strict else "")
    setup.count("predicates: ratio", kept.height, enough.height, why)
    both_kinds = kept.filter(ns / n >= section.ratio)["p"]
    names = ", ".join(map(graph.relations.name, both_kinds))
    setup.count("of them symmetric enough, too", len(both_kinds), None, names)
    one_way = total - int(relations["ns"].sum())
    setup.count("reverse absent", one_way, total, "(o, r, s) is an edge")
    passed = int((kept["n"] - kept["ns"]).sum())
    setup.count("triples", passed, one_way, "predicate below a threshold")
    edges = graph.edges.anti_join(graph.symmetric, ["p", "s", "o"])
    edges = edges.select("p", "s", o=edges["o"].cast("int64"))
    triples = edges.union(literals.select("p", "s", "o"))
    triples = triples.inner_join(graph.engine.table(kept.select("p", "ns")), "p")
    return triples.select("s", "p", "o", flag=flag("reverse_unknown", triples["ns"] > 0))
