"""Ambiguous: two entities of one name, one well known, with facts of one relation.

The paper takes the names from AmbER sets. `source: amber` reads those; `source: labels` is
kgprobe's stand-in: labels that two or more entities of the graph carry.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import (
    Shape,
    TripleColumns,
    flag,
    pick,
    require,
    told_relations,
)
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted, first, lowered
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError
from kgprobe.settings import Ambiguous
from kgprobe.sheets import text_lines

#: The paper's examples have no strata: 375 pairs of all relations together.
SHAPE = Shape(
    "ambiguous",
    ("p",),
    "{}",
    ("head", "tail"),
    (TripleColumns("head", "head", "p", "x"), TripleColumns("tail", "tail", "p", "y")),
)


def build(graph: Graph, settings: AttributeSettings[Ambiguous]) -> AttributeSet:
    """Up to `examples` pairs of facts whose prompts are the same text.

    With one prompt and k = 1 both facts can be named only when their objects coincide; such pairs
    are flagged `same_object`, or dropped with `drop_same_object`.
    """
    steps = Funnel(SHAPE.benchmark)
    pairs = candidates(graph, settings, steps)

    def choose(rows: Table) -> Table:
        n, names = settings.own.examples, [*SHAPE.strata, *SHAPE.ids]
        unique = one_object(rows, graph, settings)
        return graph.smallest(unique, n, settings.seed, names, (), SHAPE.benchmark)

    picked = pick(SHAPE, pairs, graph, settings, steps, choose, None)
    same = picked.chosen.filter(pl.col("x") == pl.col("y")).height
    steps.kept("with different objects", picked.chosen.height - same, picked.chosen.height)
    distinct = pairs.select("p", "head", "tail").distinct()
    counts = graph.frame(counted(distinct, ["p"])).cast(pl.Int64)
    return built(SHAPE, picked, graph, settings, steps, counts)


def candidates(graph: Graph, settings: AttributeSettings[Ambiguous], steps: Funnel) -> Table:
    """(p, head, tail, x, y, flag): facts of one relation of both entities of a pair."""
    own, engine = settings.own, graph.engine
    if own.source == "amber":
        pairs = engine.table(amber_pairs(graph, read_amber(own.amber_sets), steps))
    else:
        pairs = name_pairs(graph, own.fold_case, steps)
    n = engine.numbers(pairs.aggregate(n=pairs.count()))["n"]
    require(n, SHAPE.benchmark, settings, steps)
    relations = set(told_relations(own.relations, graph, steps))
    relations -= set(graph.ids.numbers(own.exclude))
    edges = graph.of(relations)
    heads = edges.select(head="s", p="p", x="o").inner_join(pairs, "head")
    heads = engine.keep(heads.select("head", "tail", "p", "x"))
    tails = edges.select(tail="s", p="p", y="o").inner_join(heads, ["tail", "p"])
    both = engine.keep(tails.select("p", "head", "tail", "x", "y"))
    shared = both.select("p", "head", "tail").distinct()
    found = engine.numbers(
        both.aggregate(heads=both["head"].nunique(), n=both.count(),
                       apart=(both["x"] != both["y"]).sum())
    )  # fmt: skip
    why = f"no relation in common of {len(relations)} ({', '.join(own.exclude)} left out)"
    steps.kept("pairs with a shared relation", found["heads"], n, why)
    steps.kept("pair and relation", engine.numbers(shared.aggregate(n=shared.count()))["n"])
    if own.drop_same_object:
        steps.kept("different objects", found["apart"], found["n"], "same object")
        both = both.filter(both["x"] != both["y"])
    return both.mutate(flag=flag("same_object", both["x"] == both["y"]))


def one_object(rows: Table, graph: Graph, settings: AttributeSettings[Ambiguous]) -> Table:
    """One (x, y) of every pair and relation, by hash."""
    by = ["p", "head", "tail"]
    return graph.smallest(rows, 1, settings.seed, ["x", "y"], by, f"{SHAPE.benchmark}/object")


def name_pairs(graph: Graph, fold_case: bool, steps: Funnel) -> Table:
    """(head, tail): of every name with several entities the one of largest and smallest degree."""
    engine = graph.engine
    named = graph.entities.filter(graph.entities["label"].notnull())
    name = lowered(named["label"]) if fold_case else named["label"]
    named = named.select("id", "degree", name=name)
    names = counted(named, ["name"])
    several = engine.keep(names.filter(names["n"] > 1))
    shared = engine.keep(named.semi_join(several, "name"))
    heads = first(shared, 1, [ibis.desc("degree"), "id"], ["name"])
    tails = first(shared, 1, ["degree", "id"], ["name"])
    both = heads.select("name", head="id", most="degree").inner_join(
        tails.select("name", tail="id", least="degree"), "name"
    )
    apart = engine.keep(both.filter(both["most"] > both["least"]).select("head", "tail"))
    entities, labelled, sharing, all_names, pairs = (
        engine.numbers(rows.aggregate(n=rows.count()))["n"]
        for rows in (graph.entities, named, shared, several, apart)
    )
    steps.kept("entities with a label", labelled, entities, "no_label")
    steps.kept("entities that share a name", sharing, labelled, "the only one of its name")
    steps.kept("names with a head and a tail", pairs, all_names, "equal degrees")
    return apart


def amber_pairs(graph: Graph, sets: Iterable[dict[str, Any]], steps: Funnel) -> pl.DataFrame:
    """(head, tail) of AmbER sets: is_head, and the least popular of the others in the graph."""
    sets = list(sets)
    numbers = graph.ids.entity_numbers(q for one in sets for q in one["qids"])
    told = sorted(numbers.values())
    asked = graph.engine.table(pl.DataFrame({"id": told}, schema={"id": pl.Int64}))
    known = set(graph.frame(graph.entities.semi_join(asked, "id").select("id"))["id"])
    rows, total = [], 0
    for one in sets:
        total += 1
        found = {numbers.get(q, -1): own for q, own in one["qids"].items()}
        here = {number: own for number, own in found.items() if number in known}
        heads = sorted(q for q, own in here.items() if own["is_head"])
        tails = sorted((own["popularity"], q) for q, own in here.items() if not own["is_head"])
        if heads and tails:
            rows.append((heads[0], tails[0][1]))
    schema = {"head": pl.Int64, "tail": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True)
    steps.kept("AmbER sets", frame.height, total, "head or tail is not in the graph")
    return frame


def read_amber(path: str | None) -> list[dict[str, Any]]:
    """The sets of amber_sets.jsonl; GraphError names the first line that is none."""
    if not path or not Path(path).is_file():
        raise GraphError(f"ambiguous: source is amber, but amber_sets is {path!r}; name the file")
    sets = []
    for number, line in text_lines(path):
        try:
            one = json.loads(line)
            sets.append({"name": one["name"], "qids": dict(one["qids"])})
        except (ValueError, KeyError, TypeError) as error:
            raise GraphError(f"{path}, line {number}: not an AmbER set ({error!r})") from error
    return sets
