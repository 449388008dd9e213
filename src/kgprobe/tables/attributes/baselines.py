"""What needs no model: the most frequent objects of a relation, and a random one."""

from collections.abc import Callable, Iterable

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


def frequencies(
    edges: pl.DataFrame,
    literals: pl.DataFrame,
    examples: Iterable[pl.DataFrame],
    ids: pl.DataFrame = WIKIDATA,
) -> pl.DataFrame:
    """(predicate, object, best, worst, objects): rank of every object of the relations that
    EXAMPLES of some benchmarks ask for; `ids`: IDS of the graph.

    Rank by number of statements in the whole graph, ties as ranges; `objects`: distinct objects of
    the relation. The inferred relations of hierarchy and two_steps count their two-step paths.
    """
    asked = {p for own in examples for p in own["predicate"].unique()}
    once, twice = _numbered(asked, ids)
    entity = _entities(ids)
    relation = pl.col("p").replace_strict({n: p for p, n in once.items()}, return_dtype=pl.String)
    numbers = list(once.values())
    own = edges.filter(pl.col("p").is_in(numbers)).group_by("p", "o").len()
    values = literals.filter(pl.col("p").is_in(numbers)).group_by("p", "value").len()
    found = [
        entity(own.with_columns(predicate=relation), "o"),
        values.select("len", predicate=relation, object="value"),
    ]
    by = edges.filter(pl.col("p").is_in(sorted({p for two in twice.values() for p in two})))
    steps = {
        key[0]: own.select("s", "o") for key, own in by.partition_by("p", as_dict=True).items()
    }
    for name, (one, other) in twice.items():
        paths = (
            steps[one].rename({"o": "m"}).join(steps[other].rename({"s": "m", "o": "z"}), on="m")
        )
        paths = paths.filter(pl.col("s") != pl.col("z")).group_by("z").len()
        found.append(entity(paths.with_columns(predicate=pl.lit(name)), "z"))
    counts = pl.concat(found)
    over = pl.col("len").rank("min", descending=True).over("predicate").cast(pl.Int64)
    level = pl.len().over("predicate", "len").cast(pl.Int64)
    return counts.select(
        "predicate",
        "object",
        best=over,
        worst=over + level - 1,
        objects=pl.len().over("predicate").cast(pl.Int64),
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

    Majority: the own object, or any gold that has a label (a model can say no other), is among the
    k most frequent objects; ties with their expectation. Random: k of the relation's objects at
    random. There are no prompts to pool ("" for both). An object that the relation never has
    (asymmetry's reversal) is never right.
    """
    named = pl.col("gold_labels").list.eval(pl.element().is_not_null())
    rows = examples.select(
        "benchmark", "example", "pattern", "position", "predicate", "object", "golds",
        named=named, right=named.list.sum().cast(pl.Int64),
    )  # fmt: skip
    objects = counted.group_by("predicate").agg(pl.col("objects").first())
    rows = rows.join(objects, on="predicate", how="left")
    rows = rows.with_columns(pl.col("objects").fill_null(1))
    ranks = counted.select("predicate", "object", "best", "worst")
    own = rows.with_columns(right=pl.lit(1, dtype=pl.Int64))
    own = own.join(ranks, on=["predicate", "object"], how="left")
    every = rows.with_columns(object=pl.col("golds")).explode("object", "named").filter("named")
    every = every.join(ranks, on=["predicate", "object"], how="left")
    key = ["benchmark", "example", "pattern", "position"]
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
                words = {name: pl.lit(word) for name, word in how.items()}
                own = frame.select(*key, alpha, k=pl.lit(k, dtype=pl.Int32), **words)
                parts.append(own.with_columns(model=pl.lit(model)))
    return pl.concat(parts)


def _drawn(right: NDArray[np.int64], total: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Probability that k of `total` objects, without replacement, hold one of `right`."""
    wrong = np.maximum(total - right, 0)
    missed = np.ones(len(total))
    for i in range(k):
        missed *= np.maximum(wrong - i, 0) / np.maximum(total - i, 1)
    return 1.0 - missed
