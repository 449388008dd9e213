"""Ambiguous: two entities of one name, one well known, with facts of one relation (3.3).

The paper takes the names from AmbER sets. `source: amber` reads those; `source: labels` is
kgprobe's stand-in: labels that two or more entities of the graph carry.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.attributes.examples import (
    Shape,
    Triple,
    capped,
    pick,
    require,
    with_labels,
)
from kgprobe.benchmarks.attributes.graph import Graph, GraphError, instances, numbers
from kgprobe.benchmarks.attributes.items import Built, built
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.sampling import smallest
from kgprobe.settings import Ambiguous

#: The paper's examples have no strata: 375 pairs of all relations together.
SHAPE = Shape(
    "ambiguous",
    ("p",),
    "P{}",
    ("head", "tail"),
    (Triple("head", "head", "p", "x"), Triple("tail", "tail", "p", "y")),
)


def build(graph: Graph, settings: Settings[Ambiguous]) -> Built:
    """Up to `examples` pairs of facts whose prompts are the same text.

    With one prompt and k = 1 both facts can be named only when their objects coincide; such pairs
    are flagged `same_object`, or dropped with `drop_same_object`.
    """
    steps = Funnel(SHAPE.benchmark)
    pairs = candidates(graph, settings, steps)
    if settings.own.disambiguate == "class":
        graph = with_classes(graph, pairs)

    def choose(frame: pl.DataFrame) -> pl.DataFrame:
        unique = capped(SHAPE, None, settings)(one_object(frame, settings))
        names = [*SHAPE.strata, *SHAPE.ids]
        return smallest(unique, settings.own.examples, settings.seed, names, (), SHAPE.benchmark)

    picked = pick(SHAPE, pairs, graph, settings, steps, choose, None)
    same = picked.chosen.filter(pl.col("x") == pl.col("y")).height
    steps.kept("with different objects", picked.chosen.height - same, picked.chosen.height)
    return built(SHAPE, picked, graph, settings, steps, _counts(pairs))


def candidates(graph: Graph, settings: Settings[Ambiguous], steps: Funnel) -> pl.DataFrame:
    """(p, head, tail, x, y, flags): facts of one relation of both entities of a pair."""
    if settings.own.source == "amber":
        pairs = amber_pairs(graph, read_amber(settings.own.amber_sets), steps)
    else:
        pairs = name_pairs(graph, settings.own.fold_case, steps)
    require(pairs, SHAPE.benchmark, settings, steps)
    relations = set(numbers(settings.own.relations)) - set(numbers(settings.own.exclude))
    edges = graph.of(relations)
    heads = pairs.join(edges.rename({"s": "head", "o": "x"}), on="head")
    both = heads.join(edges.rename({"s": "tail", "o": "y"}), on=["tail", "p"])
    shared = both.select("p", "head", "tail").unique().height
    why = f"no relation in common of {len(relations)} ({', '.join(settings.own.exclude)} left out)"
    steps.kept("pairs with a shared relation", both["head"].n_unique(), pairs.height, why)
    steps.kept("pair and relation", shared)
    same = pl.col("x") == pl.col("y")
    if settings.own.drop_same_object:
        kept = both.filter(~same)
        steps.kept("different objects", kept.height, both.height, "same object")
        both = kept
    flags = pl.when(same).then(pl.lit(["same_object"]))
    return both.select(
        "p", "head", "tail", "x", "y", flags=flags.otherwise(pl.lit([], dtype=pl.List(pl.String)))
    )


def one_object(frame: pl.DataFrame, settings: Settings[Ambiguous]) -> pl.DataFrame:
    """One (x, y) of every pair and relation, by hash."""
    by = ["p", "head", "tail"]
    return smallest(frame, 1, settings.seed, ["x", "y"], by, f"{SHAPE.benchmark}/object")


def name_pairs(graph: Graph, fold_case: bool, steps: Funnel) -> pl.DataFrame:
    """(head, tail): of every name with several entities the one of largest and smallest degree."""
    named = graph.entities.filter(pl.col("label").is_not_null())
    steps.kept("entities with a label", named.height, graph.entities.height, "no_label")
    name = pl.col("label").str.to_lowercase() if fold_case else pl.col("label")
    named = named.select("id", "degree", name.alias("name"))
    shared = named.filter(pl.len().over("name") > 1)
    why = "the only one of its name"
    steps.kept("entities that share a name", shared.height, named.height, why)
    order = shared.sort("name", "degree", "id", descending=[False, True, False])
    heads = order.unique("name", keep="first", maintain_order=True)
    order = shared.sort("name", "degree", "id")
    tails = order.unique("name", keep="first", maintain_order=True)
    pairs = heads.join(tails, on="name", suffix="_tail")
    apart = pairs.filter(pl.col("degree") > pl.col("degree_tail"))
    steps.kept("names with a head and a tail", apart.height, pairs.height, "equal degrees")
    return apart.select(head="id", tail="id_tail")


def amber_pairs(graph: Graph, sets: Iterable[dict[str, Any]], steps: Funnel) -> pl.DataFrame:
    """(head, tail) of AmbER sets: is_head, and the least popular of the others in the graph."""
    known = set(graph.entities["id"].to_list())
    rows, total = [], 0
    for one in sets:
        total += 1
        here = {int(q[1:]): told for q, told in one["qids"].items() if int(q[1:]) in known}
        heads = sorted(q for q, told in here.items() if told["is_head"])
        tails = sorted((told["popularity"], q) for q, told in here.items() if not told["is_head"])
        if heads and tails:
            rows.append((heads[0], tails[0][1]))
    schema = {"head": pl.UInt32, "tail": pl.UInt32}
    frame = pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True)
    steps.kept("AmbER sets", frame.height, total, "head or tail is not in the graph")
    return frame


def read_amber(path: str | None) -> list[dict[str, Any]]:
    """The sets of amber_sets.jsonl; GraphError names the first line that is none."""
    if not path or not Path(path).is_file():
        raise GraphError(f"ambiguous: source is amber, but amber_sets is {path!r}; name the file")
    sets = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        try:
            one = json.loads(line)
            sets.append({"name": one["name"], "qids": dict(one["qids"])})
        except (ValueError, KeyError, TypeError) as error:
            raise GraphError(f"{path}, line {number}: not an AmbER set ({error!r})") from error
    return sets


def with_classes(graph: Graph, pairs: pl.DataFrame) -> Graph:
    """The graph in which heads and tails are called "name (class)" where a class has a label."""
    ends = pl.concat([pairs["head"], pairs["tail"]]).unique().alias("id").to_frame()
    classes = with_labels(instances(graph), ["class"], graph).join(ends, on="id", how="semi")
    named = classes.join(
        graph.entities.select(pl.col("id").alias("class"), pl.col("label").alias("kind")),
        on="class",
    )
    entities = graph.entities.join(named.select("id", "kind"), on="id", how="left").with_columns(
        label=pl.when(pl.col("kind").is_not_null())
        .then(pl.format("{} ({})", "label", "kind"))
        .otherwise("label")
    )
    return Graph(graph.edges, graph.literals, entities.drop("kind"), graph.counts)


def _counts(pairs: pl.DataFrame) -> pl.DataFrame:
    distinct = pairs.select("p", "head", "tail").unique()
    return distinct.group_by("p").agg(pl.len().alias("n"))
