"""ITEMS of the probed examples, and the CANDIDATES among which their answers are ranked."""

import json
import unicodedata

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.knowledge.engine import count_rows, first
from kgprobe.knowledge.graph import Graph
from kgprobe.schema import CANDIDATES, ITEMS

#: columns of an example's row that are copied to `meta` of ITEMS
META = ("object", "object_label", "origin", "pattern", "position", "object_kind", "flags")

#: columns of an example's row that are copied to ITEMS, after the name of the item
COPIED = ("example", "role", "predicate", "subject_label", "subject", "set")


def candidate_sets(examples: pl.DataFrame, graph: Graph, size: int) -> pl.DataFrame:
    """Return CANDIDATES and `added`: the golds of sampled rows and frequent objects of a relation.

    A relation's list has the objects of all its rows and its most frequent objects, up to `size` in
    all, or as many as the rows' own; further golds of the rows are added to it, so that a ranking
    knows every correct answer. Each label occurs once per relation, however its letters are
    composed; the reversed rows of asymmetry are answered by subjects and have their own sets.
    """
    rows = examples.with_columns(set=_set_name())
    objects = rows.select("set", id="object", label="object_label", rank=pl.lit(0, pl.Int64))
    turned = pl.col("origin") == "reversed"
    frequent = _frequent(rows.select("set", "predicate", turned=turned).unique(), graph, size)
    # of several objects with one label, keep the one that comes first in the rows
    composed = pl.col("label").str.normalize("NFC").alias("composed")
    objects = objects.unique(["set", "label"], keep="first", maintain_order=True)
    listed = pl.concat([objects, frequent]).sort("set", "rank", "label", "id")
    listed = listed.with_columns(composed)
    listed = listed.unique(["set", "composed"], keep="first", maintain_order=True)
    place = pl.int_range(pl.len()).over("set")
    at_least = (pl.col("rank") == 0).sum().over("set")
    listed = listed.filter(place < pl.max_horizontal(at_least, pl.lit(size)))
    golds = rows.select("set", "golds", "gold_labels").explode("golds", "gold_labels")
    golds = golds.drop_nulls("gold_labels").select("set", id="golds", label="gold_labels").unique()
    golds = golds.with_columns(composed).sort("set", "label", "id")
    golds = golds.join(listed, on=["set", "composed"], how="anti", maintain_order="left")
    golds = golds.unique(["set", "composed"], keep="first", maintain_order=True).drop("composed")
    listed = listed.select("set", "id", "label", added=pl.lit(False))
    both = pl.concat([listed, golds.with_columns(added=pl.lit(True))]).sort("set", "label")
    both = both.with_columns(index=pl.int_range(pl.len(), dtype=pl.Int32).over("set"))
    return both.select(*CANDIDATES.columns, "added")


def _set_name() -> pl.Expr:
    is_reversed = pl.col("origin") == "reversed"
    end = pl.when(is_reversed).then(pl.lit("/reversed")).otherwise(pl.lit(""))
    return pl.concat_str("benchmark", pl.lit("/"), "predicate", end)


def _frequent(sets: pl.DataFrame, graph: Graph, size: int) -> pl.DataFrame:
    """Return (set, id, label, rank): the most frequent labeled objects of every set's relation with
    `size` different labels, or all; subjects for reversed ones (`turned`)."""
    drawn, enough = 2 * size, []
    while True:
        rows = _most_frequent(sets, graph, drawn)
        labels = pl.col("label").str.normalize("NFC").n_unique()
        # some objects share a label; a relation with fewer of them than drawn has no more
        short = rows.group_by("set").agg(n=pl.len(), labels=labels)
        short = short.filter(pl.col("labels") < size, pl.col("n") >= drawn)
        enough.append(rows.join(short, on="set", how="anti", maintain_order="left"))
        if not short.height:
            return pl.concat(enough)
        sets, drawn = sets.join(short, on="set", how="semi"), 2 * drawn


def _most_frequent(sets: pl.DataFrame, graph: Graph, size: int) -> pl.DataFrame:
    """Return (set, id, label, rank): the `size` most frequent labeled objects, and as many
    literals, of every set's relation; subjects for reversed ones."""
    sets = sets.with_columns(p=graph.relations.numbers_of(sets["predicate"])).drop("predicate")
    parts = []
    for side, some in (("o", sets.filter(~pl.col("turned"))), ("s", sets.filter("turned"))):
        if not some.height:
            continue
        # dates have subjects, too
        rows = graph.edges if side == "o" else graph.statements
        counts = _counts(graph, rows, some, side).semi_join(graph.labeled, [(side, "id")])
        top = graph.frame(_top(counts, size, side)).rename({side: "number"})
        named = graph.texts(top["number"]).rename({"n": "number", "text": "label"})
        top = top.join(named, on="number").select("p", "n", "id", "label")
        parts.append(top.join(some, on="p"))
        if side == "o":
            counts = _counts(graph, graph.literals, some, "value", "text")
            top = graph.frame(_top(counts, size, "value"))
            parts.append(top.select("p", "n", id="value", label="text").join(some, on="p"))
    every = pl.concat(part.select("set", "n", "id", "label") for part in parts)
    every = every.sort("set", "n", "id", descending=[False, True, False])
    ranked = every.with_columns(rank=1 + pl.int_range(pl.len(), dtype=pl.Int64).over("set"))
    return ranked.select("set", "id", "label", "rank")


def _counts(graph: Graph, rows: Table, sets: pl.DataFrame, *values: str) -> Table:
    """Return (p, values, n): the frequency of each value in the relations of the sets."""
    chosen = rows.semi_join(graph.engine.table(sets.select("p").unique()), "p")
    return count_rows(chosen, ["p", *values])


def _top(counts: Table, size: int, value: str) -> Table:
    """Return the most frequent values of each relation, ties to the lower."""
    return first(counts, size, [ibis.desc("n"), value], ["p"])


def as_items(examples: pl.DataFrame, options: pl.DataFrame) -> pl.DataFrame:
    """Return ITEMS of sampled rows of EXAMPLES; `answers`: every labeled gold, its object first.

    `options`: candidate_sets. `meta` has the number of an item's golds that were added to its list.
    """
    columns = ("set", "label", "index", "added")
    options = options.select(columns)
    places = {(name, _composed(label)): (i, new) for name, label, i, new in options.rows()}
    rows = []
    ordered = examples.with_columns(set=_set_name()).sort("example", "position")
    for number, row in enumerate(ordered.iter_rows(named=True)):
        labels = map(_composed, [row["object_label"], *filter(None, row["gold_labels"])])
        answers = [places[row["set"], label] for label in dict.fromkeys(labels)]
        meta = {key: row[key] for key in META} | {"golds_added": sum(new for _, new in answers)}
        cells = [row[name] for name in COPIED]
        text = json.dumps(meta, sort_keys=True, ensure_ascii=False)
        name = f"{row['example']}#{row['position']}"
        rows.append((name, *cells, [place for place, _ in answers], number, text))
    return pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row")


def _composed(label: str) -> str:
    return unicodedata.normalize("NFC", label)
