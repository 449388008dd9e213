"""What needs no model: the most frequent objects of a relation, and a random one."""

from collections.abc import Callable, Collection, Iterable

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
    once, twice = _numbered({p for own in examples for p in own["predicate"].unique()}, ids)
    entity, numbers = _entities(ids), list(once.values())
    relation = pl.col("p").replace_strict({n: p for p, n in once.items()}, return_dtype=pl.String)
    asked = pl.col("p").is_in(numbers)
    own = edges.filter(asked).group_by("p", "o").len().with_columns(predicate=relation)
    values = literals.filter(asked).group_by("p", "value").len()
    found = [entity(own, "o"), values.select("len", predicate=relation, object="value")]
    used = sorted({p for two in twice.values() for p in two})
    by = edges.filter(pl.col("p").is_in(used)).partition_by("p", as_dict=True)
    for name, (one, other) in twice.items():
        paths = by[(one,)].select("s", m="o").join(by[(other,)].select(m="s", z="o"), on="m")
        paths = paths.filter(pl.col("s") != pl.col("z")).group_by("z").len()
        found.append(entity(paths.with_columns(predicate=pl.lit(name)), "z"))
    over = pl.col("len").rank("min", descending=True).over("predicate").cast(pl.Int64)
    level = pl.len().over("predicate", "len").cast(pl.Int64)
    objects = pl.len().over("predicate").cast(pl.Int64)
    return pl.concat(found).select(
        "predicate", "object", best=over, worst=over + level - 1, objects=objects
    )


def _numbered(
    asked: Iterable[str], ids: pl.DataFrame
) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Relations with their numbers: of those of one step, and both of those of two."""
    known = dict(ids.filter(kind=RELATION).select("id", "number").rows())
    once, twice = {}, {}

    def number(name: str) -> int:
        return int(known[name] if known else name[1:])

    for name in sorted(asked):
        half = name[: len(name) // 2]
        if STEP in name:
            first, _, second = name.partition(STEP)
            twice[name] = number(first), number(second)
        elif name == f"{half}/{half}" and name not in known:
            twice[name] = number(half), number(half)
        else:
            once[name] = number(name)
    return once, twice


def _entities(ids: pl.DataFrame) -> Callable[[pl.DataFrame, str], pl.DataFrame]:
    """(len, predicate, object) of counts whose entities are numbers in a column."""
    names = ids.filter(kind=ENTITY).select("number", object="id")

    def told(counts: pl.DataFrame, column: str) -> pl.DataFrame:
        if names.height:
            named = counts.join(names, left_on=column, right_on="number")
        else:
            named = counts.with_columns(object=pl.format("Q{}", column))
        return named.select("len", "predicate", "object")

    return told


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
