"""What needs no model: the most frequent objects of a relation, and a random one."""

from collections.abc import Collection, Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.knowledge.ids import ENTITY, IDS, RELATION
from kgprobe.metrics.attributes import KEYS as KS
from kgprobe.metrics.ranking import hit_at
from kgprobe.templates import STEP

MAJORITY, RANDOM, METHOD = "majority", "random", "baseline"
#: IDS of a graph whose ids are Wikidata's
WIKIDATA = pl.DataFrame(schema=dict(IDS.columns))


def guesses(
    edges: pl.DataFrame,
    literals: pl.DataFrame,
    examples: Collection[pl.DataFrame],
    ids: pl.DataFrame = WIKIDATA,
) -> pl.DataFrame:
    """`alphas` of EXAMPLES of some benchmarks; `edges`, `literals`, `ids` (IDS): of the graph."""
    counted = frequencies(edges, literals, examples, ids)
    return pl.concat([alphas(own, counted) for own in examples])


def frequencies(
    edges: pl.DataFrame,
    literals: pl.DataFrame,
    examples: Iterable[pl.DataFrame],
    ids: pl.DataFrame = WIKIDATA,
) -> pl.DataFrame:
    """(predicate, object, best, worst, objects): rank of every object of the relations asked for by
    number of statements, ties as ranges, and number of the relation's objects. The inferred
    relations of hierarchy and two_steps count their two-step paths."""
    known = dict(ids.filter(kind=RELATION).select("id", "number").rows())
    asked = {name for own in examples for name in own["predicate"].unique()}
    hops = {
        name: [int(known[hop] if known else hop[1:]) for hop in _hops(name, known)]
        for name in sorted(asked)
    }
    once = {own[0]: name for name, own in hops.items() if len(own) == 1}
    relation = pl.col("p").replace_strict(once, return_dtype=pl.String)
    rows, values = (frame.filter(pl.col("p").is_in(list(once))) for frame in (edges, literals))
    counts = [rows.group_by("p", "o").len().select("o", "len", predicate=relation)]
    used = sorted({hop for own in hops.values() if len(own) > 1 for hop in own})
    by = edges.filter(pl.col("p").is_in(used)).partition_by("p", as_dict=True)
    for name, (first, *then) in hops.items():
        for second in then:
            paths = by[(first,)].select("s", m="o").join(by[(second,)].select("o", m="s"), on="m")
            paths = paths.filter(pl.col("s") != pl.col("o")).group_by("o").len()
            counts.append(paths.select("o", "len", predicate=pl.lit(name)))
    entities, counted = ids.filter(kind=ENTITY).select(o="number", object="id"), pl.concat(counts)
    if entities.height:
        counted = counted.join(entities, on="o")
    else:
        counted = counted.with_columns(object=pl.format("Q{}", "o"))
    texts = values.group_by("p", "value").len().select("len", predicate=relation, object="value")
    over = pl.col("len").rank("min", descending=True).over("predicate").cast(pl.Int64)
    level = pl.len().over("predicate", "len").cast(pl.Int64)
    objects = pl.len().over("predicate").cast(pl.Int64)
    return pl.concat([counted.select("len", "predicate", "object"), texts]).select(
        "predicate", "object", best=over, worst=over + level - 1, objects=objects
    )


def _hops(name: str, known: Collection[str]) -> list[str]:
    """The relations of a path of two steps; a relation by itself. `known`: those that have ids."""
    half = name[: len(name) // 2]
    if STEP in name:
        return name.split(STEP, 1)
    return [half, half] if name == f"{half}/{half}" and name not in known else [name]


def alphas(examples: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """ALPHAS of both baselines for the triples of EXAMPLES.

    Majority: the own object, or any gold that has a label, is among the k most frequent objects;
    random: among k of the relation's objects. An object that the relation never has (asymmetry's
    reversal) is never right.
    """
    key = ["benchmark", "example", "pattern", "position"]
    named = pl.col("gold_labels").list.eval(pl.element().is_not_null())
    objects = counted.group_by("predicate").agg(pl.col("objects").first())
    rows = examples.select(
        *key, "predicate", "object", "golds", named=named, right=named.list.sum().cast(pl.Int64)
    )
    rows = rows.join(objects, on="predicate", how="left")
    rows = rows.with_columns(pl.col("objects").fill_null(1))
    every = rows.with_columns(object=pl.col("golds")).explode("object", "named").filter("named")
    own, every = (
        frame.join(counted.drop("objects"), on=["predicate", "object"], how="left")
        for frame in (rows.with_columns(right=pl.lit(1, dtype=pl.Int64)), every)
    )
    every = every.sort("best", nulls_last=True).group_by(key).agg(pl.all().first())
    parts = []
    for gold, frame in (("own", own), ("set", every)):
        known = frame["best"].is_not_null().to_numpy()
        best, worst = (frame[c].fill_null(1 << 40).to_numpy() for c in ("best", "worst"))
        right, total = frame["right"].to_numpy(), frame["objects"].to_numpy()
        how = {"prompt": "", "method": METHOD, "pooling": "", "kind": "exact", "gold": gold}
        for k in KS:
            drawn = _drawn(right, total, k)
            for model, value in ((MAJORITY, hit_at(k, best, worst)), (RANDOM, drawn)):
                alpha = pl.Series("alpha", np.where(known, value, 0.0))
                words = {name: pl.lit(word) for name, word in {**how, "model": model}.items()}
                parts.append(frame.select(*key, alpha, k=pl.lit(k, dtype=pl.Int32), **words))
    return pl.concat(parts)


def _drawn(right: NDArray[np.int64], total: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Probability that k of `total` objects, without replacement, hold one of `right`."""
    wrong = np.maximum(total - right, 0)
    missed = np.ones(len(total))
    for i in range(k):
        missed *= np.maximum(wrong - i, 0) / np.maximum(total - i, 1)
    return 1.0 - missed
