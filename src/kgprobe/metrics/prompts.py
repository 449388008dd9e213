"""Metrics of prompts: P@1, P@10, MRR, any-sentence accuracy; macro over relations and micro.

    OUTCOMES + EXAMPLES  --joined-->  rows  --ranked | sentences-->  a value per unit  --summary-->
    value, n and interval per relation, macro and micro

All values lie in 0 .. 1. Ties fall in random order and every value is its expectation. Intervals:
Wilson for shares of one relation or of all facts, else a percentile bootstrap in which facts are
drawn with replacement within their relation, the same draws for every prompt.
Source: Shin et al. 2020, section 4 (facts) and 5 (relation extraction); autoprompt.md, section 7.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.intervals import percentile, wilson
from kgprobe.metrics.ranking import hit_at
from kgprobe.sampling import hash_key

Numbers = NDArray[np.float64]

MEASURES = ("p1", "p10", "mrr")
#: measures that are shares of units, and so have a Wilson interval
SHARES = frozenset({"p1", "p10", "any_sentence", "sentence"})
REPLICATES = 2000
#: reciprocal ranks beyond are 0 in the released evaluation
RELEASED_CUT = 10_000
SUBSETS = ("all", "no_overlap")
ABSENT = ("drop", "wrong")
_KEY = ["group", "split", "example"]
_SUMMARY = {
    "prompt": pl.String,
    "level": pl.String,
    "group": pl.String,
    "measure": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
    "low": pl.Float64,
    "high": pl.Float64,
    "interval": pl.String,
}


def joined(
    examples: pl.DataFrame, outcomes: pl.DataFrame, split: str = "test", subset: str = "all"
) -> pl.DataFrame:
    """The outcomes of `split` beside their examples; `subset` no_overlap keeps unflagged ones.

    Raises ValueError for outcomes of examples that are not there, and when nothing is left.
    """
    if subset not in SUBSETS:
        raise ValueError(f"subset {subset!r}; legal: {', '.join(SUBSETS)}")
    wanted = outcomes.filter(pl.col("split") == split)
    rows = wanted.join(examples, on=_KEY, how="left", validate="m:1")
    lost = rows.filter(pl.col("label").is_null())
    if lost.height:
        first = lost.select(_KEY).row(0, named=True)
        raise ValueError(f"{lost.height} outcomes have no example, first {first}")
    if subset == "no_overlap":
        rows = rows.filter(pl.col("flags").list.len() == 0)
    if not rows.height:
        raise ValueError(f"no outcomes of split {split!r}, subset {subset!r}")
    return rows.sort("prompt", *_KEY)


def ranked(
    rows: pl.DataFrame, filtered: bool = False, cut: int | None = None, absent: str = "drop"
) -> pl.DataFrame:
    """prompt, group, unit (the example) and p1, p10, mrr of every row of `joined`.

    `filtered` takes the ranks that ignore other right answers; reciprocal ranks beyond `cut` are 0;
    golds without rank (not one token, not in the vocabulary) are left out or, with `absent` wrong,
    count as never found.
    """
    if absent not in ABSENT:
        raise ValueError(f"absent {absent!r}; legal: {', '.join(ABSENT)}")
    first, last = ("filtered_best", "filtered_worst") if filtered else ("best", "worst")
    if absent == "drop":
        rows = rows.filter(pl.col(first).is_not_null())
    known = rows[first].is_not_null().to_numpy()
    best = rows[first].fill_null(1).to_numpy().astype(np.int64)
    worst = rows[last].fill_null(1).to_numpy().astype(np.int64)
    found = {"p1": hit_at(1, best, worst), "p10": hit_at(10, best, worst)}
    found["mrr"] = reciprocal(best, worst, cut)
    return rows.select(
        "prompt",
        "group",
        pl.col("example").alias("unit"),
        *(pl.Series(name, np.where(known, values, 0.0)) for name, values in found.items()),
    )


def cut_of(mode: str) -> int | None:
    """Where reciprocal ranks end in a mode of autoprompt.md, section 10 (None: nowhere)."""
    return RELEASED_CUT if mode == "released" else None


def reciprocal(
    best: NDArray[np.int64], worst: NDArray[np.int64], cut: int | None = None
) -> Numbers:
    """Expected reciprocal rank within tie ranges, ranks beyond `cut` counting 0."""
    if not len(best):
        return np.zeros(0)
    parts = 1.0 / np.arange(1, int(worst.max()) + 1)
    if cut is not None:
        parts[cut:] = 0.0
    sums = np.concatenate([[0.0], np.cumsum(parts)])
    return np.asarray((sums[worst] - sums[best - 1]) / (worst - best + 1), dtype=float)


def right(rows: pl.DataFrame) -> pl.Series:
    """Whether the answer of a row of `joined` is its label or, ignoring case, one of its surfaces.

    The rule of relation extraction (section 5): the model may name the object as its sentence does.
    """
    answer = pl.col("answer").str.to_lowercase()
    surfaces = pl.col("surfaces").list.eval(pl.element().str.to_lowercase())
    equal = (pl.col("answer") == pl.col("label")) | surfaces.list.contains(answer)
    return rows.select(equal.alias("right"))["right"]


def sentences(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(per fact, per sentence) values of relation extraction, ready for `summary`.

    Per fact: any_sentence (right for any of its sentences) and sentences (their number); per
    sentence: sentence. The first rewards facts with many sentences, so print all three.
    """
    each = rows.with_columns(right(rows).cast(pl.Float64).alias("sentence"))
    facts = (
        each.group_by("prompt", "group", "fact")
        .agg(
            pl.col("sentence").max().alias("any_sentence"),
            pl.len().cast(pl.Float64).alias("sentences"),
        )
        .rename({"fact": "unit"})
        .sort("prompt", "group", "unit")
    )
    return facts, each.select("prompt", "group", pl.col("example").alias("unit"), "sentence")


def by_label(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the class in place of the group: `summary` then gives accuracy per class."""
    return rows.with_columns(pl.col("label").alias("group"))


def summary(
    values: pl.DataFrame, measures: Sequence[str] = MEASURES, seed: int = 0
) -> pl.DataFrame:
    """Mean, n and 95 % interval of every measure per prompt: level group, macro and micro.

    `values`: prompt, group, unit and a column per measure. macro is the mean of the groups' means,
    micro the mean over all units; n counts units. The group of both is "".
    """
    found: list[dict[str, object]] = []
    for (prompt,), own in values.sort("prompt", "group", "unit").group_by(
        "prompt", maintain_order=True
    ):
        found += [{"prompt": prompt, **row} for row in _summary(own, measures, seed, SHARES)]
    return pl.DataFrame(found, schema=_SUMMARY)


def gain(
    values: pl.DataFrame,
    first: str,
    second: str,
    measures: Sequence[str] = MEASURES,
    seed: int = 0,
) -> pl.DataFrame:
    """`summary` of prompt `first` minus prompt `second` on the units that both have (paired)."""
    pair = [values.filter(pl.col("prompt") == name).drop("prompt") for name in (first, second)]
    both = pair[0].join(pair[1], on=["group", "unit"], how="inner", suffix="_other", validate="1:1")
    if not both.height:
        raise ValueError(f"prompts {first!r} and {second!r} share no example")
    both = both.with_columns(pl.col(m) - pl.col(f"{m}_other") for m in measures)
    rows = _summary(both.sort("group", "unit"), measures, seed, frozenset())
    return pl.DataFrame([{"prompt": f"{first} - {second}", **r} for r in rows], schema=_SUMMARY)


def _summary(
    values: pl.DataFrame, measures: Sequence[str], seed: int, shares: frozenset[str]
) -> Iterator[dict[str, object]]:
    """Rows of one prompt; measures in `shares` have Wilson intervals outside of the macro mean."""
    means, sizes, drawn = [], [], []
    for (group,), own in values.group_by("group", maintain_order=True):
        table = own.select(measures).to_numpy()
        means.append(table.mean(axis=0))
        sizes.append(len(table))
        drawn.append(replicates(table, hash_key(seed, str(group))))
        yield from _level("group", str(group), measures, means[-1], len(table), drawn[-1], shares)
    count = np.array(sizes, dtype=float)
    stacked, every = np.stack(drawn), np.stack(means)
    yield from _level(
        "macro", "", measures, every.mean(axis=0), int(count.sum()), stacked.mean(axis=0),
        frozenset(),
    )  # fmt: skip
    weights = count / count.sum()
    yield from _level(
        "micro", "", measures, weights @ every, int(count.sum()),
        np.tensordot(weights, stacked, axes=1), shares,
    )  # fmt: skip


def _level(
    level: str,
    group: str,
    measures: Sequence[str],
    means: Numbers,
    n: int,
    drawn: Numbers,
    shares: frozenset[str],
) -> Iterator[dict[str, object]]:
    for column, measure in enumerate(measures):
        value = float(means[column])
        if measure in shares:
            low, high = wilson(min(max(value * n, 0.0), float(n)), n)
        else:
            low, high = percentile(drawn[:, column])
        kind = "wilson" if measure in shares else "bootstrap"
        yield {
            "level": level, "group": group, "measure": measure, "value": value, "n": n,
            "low": low, "high": high, "interval": kind,
        }  # fmt: skip


def replicates(values: Numbers, seed: int) -> Numbers:
    """Means of REPLICATES bootstrap samples of the rows of `values` (units x measures)."""
    n = len(values)
    generator = np.random.Generator(np.random.PCG64(seed))
    chunk = max(1, 2_000_000 // n)
    found = []
    for start in range(0, REPLICATES, chunk):
        drawn = generator.integers(0, n, size=(min(chunk, REPLICATES - start), n))
        found.append(np.stack([column[drawn].mean(axis=1) for column in values.T], axis=1))
    return np.concatenate(found)
