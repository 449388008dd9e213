"""Comparison of a claim: two selections of RESULTS, paired, and one difference with its interval.

    memorized = Side({"metric": "R@1", "group": "TP"})
    Comparison(
        a=memorized.but(choice="oracle").highest("model", "prompt", "method"),
        b=memorized.but(kind=BASELINE, model="frequency", choice="none"),
        per=("benchmark",),
    )

A side names dimensions of RESULTS, or `kind` and `family` of the model, each with patterns: `a|b`
either, `*` any text, `!a|b` anything else. An unnamed dimension matches anything, except that
`group`, `slice` and further settings must be "", and `kind` must be a model trained elsewhere: our
training facts say nothing about the real world. A side may be one number.

How pairs are summarized:

    difference        mean of a - b
    wins              fraction of the differing pairs in which a is higher, minus one half
    steps             mean of a model minus the next smaller one of its family
    near              mean of a - b over models of similar size
    pearson           correlation of a with the logarithm of the parameters, mean over benchmarks
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partialmethod
from itertools import pairwise
from math import hypot, log10
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from kgprobe.contracts import SETTING
from kgprobe.experiments import is_control
from kgprobe.metrics.bootstrap import of_draws
from kgprobe.metrics.intervals import Interval, fisher, wilson
from kgprobe.tables.claims.paired import Draws, RunAnswers
from kgprobe.tables.report import marks
from kgprobe.tables.results import DIMENSIONS

#: kinds of models that can have real-world knowledge
TRAINED = "masked|causal|seq2seq|api"
#: baselines of all papers, which are not in the table of models
BASELINE, CONTROL = "baseline", "control"
#: dimension of a selection -> its default pattern
NAMED: Mapping[str, str] = {
    **dict.fromkeys((d for d in DIMENSIONS if d != "paper"), "*"),
    **dict.fromkeys(("group", "slice", *SETTING), ""),
    "kind": TRAINED,
    "family": "*",
}
READINGS = ("difference", "wins", "steps", "near", "pearson")
#: values of `interval` for bounds that contain 95 % of an estimate from items drawn independently
#: or in pairs. The range of subsets, the spread of random orders and one standard error are not
#: among them
ESTIMATED = (
    "wilson", "newcombe", "student", "fisher", "bootstrap", "cluster bootstrap",
    "paired bootstrap", "paired cluster bootstrap",
)  # fmt: skip
#: models of numbers that follow from the set alone and are exact: counts ("" as model), and a
#: random guess. The majority and frequency baselines vary with the items, as models do
EXACT = ("", "random")
#: models of similar size: the larger has at most this many times the parameters of the smaller
NEAR = 1.25
#: normal quantile of the 95 % of every interval
Z = 1.959963984540054

Row = Mapping[str, Any]


class IncomparableError(Exception):
    """RESULTS lack what a comparison needs; the message says what."""


@dataclass(frozen=True)
class Side:
    """One side: patterns by dimension, then reductions, in this order. `scale`: the model with the
    most parameters ("largest"), the others ("smaller"), or any (""). Raises ValueError for other
    names."""

    where: Mapping[str, str] = field(default_factory=dict)
    scale: str = ""
    reduced: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        for name in (*self.where, *(d for _, names in self.reduced for d in names)):
            _legal(name, NAMED, "a selection")
        _legal(self.scale, ("", "largest", "smaller"), "scale")

    def but(self, **where: str) -> "Side":
        """Return the side with other patterns."""
        return replace(self, where={**self.where, **where})

    def of(self, scale: str) -> "Side":
        """Select only the numbers of the largest model, or of the smaller ones."""
        return replace(self, scale=scale)

    def over(self, way: str, *dimensions: str) -> "Side":
        """Take the highest (max) or lowest number (min), or the mean, over these dimensions."""
        return replace(self, reduced=(*self.reduced, (way, dimensions)))

    highest, lowest = partialmethod(over, "max"), partialmethod(over, "min")
    mean = partialmethod(over, "mean")

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.where.items()]
        parts += [f"{self.scale} model"] if self.scale else []
        parts += [f"{way} over {', '.join(names)}" for way, names in self.reduced]
        return "; ".join(parts) or "all"


@dataclass(frozen=True)
class Comparison:
    """Two sides, of which b may be a number (`steps` and `pearson` compare models with each other
    and need none), the dimensions that define their pairs, and how these become a value (READINGS).
    Raises ValueError for an unknown dimension or reading."""

    a: Side
    b: Side | float
    per: tuple[str, ...]
    read: str = "difference"

    def __post_init__(self) -> None:
        for name in self.per:
            _legal(name, NAMED, "per")
        _legal(self.read, READINGS, "read")

    def __str__(self) -> str:
        per = f" per {', '.join(self.per)}" if self.per else ""
        return f"a: {self.a}; b: {self.b}; {self.read}{per}"


def _legal(name: str, names: Sequence[str] | Mapping[str, Any], place: str) -> None:
    if name not in names:
        raise ValueError(f"{place}: {name!r}; valid: {', '.join(names)}")


@dataclass(frozen=True)
class Measured:
    """A value with its bounds (None: not computed), the number of items, and its rows.

    `n`: the fewest items behind one of its numbers (`marks.size`); `highest_of`, `lowest_of`: the
    number of values it was chosen from as the highest or lowest; `draws`: the value in every draw
    of its items, if these are known.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    rows: tuple[Row, ...] = ()
    highest_of: int = 1
    lowest_of: int = 1
    draws: Draws | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Outcome:
    """Result of a comparison: means of both sides over `pairs`, and the value under its reading.

    `low`, `high`: 95 %, None if a number has no interval. `n`: the fewest items behind one of the
    numbers; for counted pairs or correlated models, their number. `sides`: the rows of a and of b;
    `values`: those of every pair.
    """

    a: float
    b: float
    value: float
    low: float | None
    high: float | None
    n: int
    pairs: int
    sides: Mapping[str, tuple[Row, ...]]
    values: tuple[tuple[float, float], ...] = ()


def with_models(results: pl.DataFrame, models: Mapping[str, Mapping[str, str]]) -> pl.DataFrame:
    """Add kind, family and parameters of models to RESULTS.

    `models`: the models by name. A control `source` makes the kind "control"; models not listed are
    baselines. `parameters` are millions, null if the table of models has none.
    """
    rows = []
    for name in results["model"].unique():
        row = models.get(name, {"kind": BASELINE, "source": ""})
        kind = CONTROL if is_control(row) else row["kind"]
        size = row.get("parameters")
        rows.append((name, kind, family(name), float(size) if size else None))
    texts = dict.fromkeys(("model", "kind", "family"), pl.String)
    known = pl.DataFrame(rows, schema={**texts, "parameters": pl.Float64}, orient="row")
    return results.join(known, on="model", how="left", maintain_order="left")


def family(model: str) -> str:
    """Remove the size from a model's name: models of one family differ only in size.

    >>> family("bert-large-cased"), family("opt-6.7b"), family("gpt2-xl")
    ('bert-cased', 'opt', 'gpt2')
    """
    words = re.split(r"[-_]", model.casefold())
    size = r"tiny|mini|small|medium|base|large|xl|xxl|\d+(\.\d+)?[mb]"
    return "-".join(word for word in words if not re.fullmatch(size, word)) or model


def evaluate(
    comparison: Comparison, results: pl.DataFrame, answers: RunAnswers | None = None
) -> Outcome:
    """Evaluate `comparison` on RESULTS from `with_models`; `answers`: the answers behind them,
    without which a difference is computed from the bounds of both sides.

    Raises IncomparableError if a side has no number, a named model is missing, several numbers
    match one pair, or too few pairs are left.
    """
    b, read, per = comparison.b, comparison.read, comparison.per
    if read in ("pearson", "steps", "near"):
        per = (*per, "model")
    one = _places(comparison.a, results, per, None if read == "pearson" else answers)
    if read == "pearson":
        return _correlation(one)
    if read == "steps":
        one, other = _steps(one)
    elif read == "near":
        one, other = _near(one, _places(b, results, per, answers))
    else:
        other = _places(b, results, per, answers, like=one)
    pairs = [(one[key], other[key]) for key in one if key in other]
    if not pairs:
        raise IncomparableError(f"the two sides share no {', '.join(per)}")
    value, low, high = (_wins if read == "wins" else _difference)(pairs)
    fewest = min(side.n for pair in pairs for side in pair if side.rows)
    sides = dict(zip("ab", zip(*pairs, strict=True), strict=True))
    a, b = (sum(number.value for number in side) / len(pairs) for side in sides.values())
    return Outcome(
        a, b, value, low, high,
        n=len(pairs) if read == "wins" else fewest, pairs=len(pairs),
        sides={name: tuple(row for x in side for row in x.rows) for name, side in sides.items()},
        values=tuple((x.value, y.value) for x, y in pairs),
    )  # fmt: skip


def select(side: Side, results: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a side. Raises IncomparableError without any, or without a named model."""
    chosen = {name: side.where.get(name, usual) for name, usual in NAMED.items()}
    blank = [pl.col(name) == "" for name, patterns in chosen.items() if not patterns]
    rows = results.filter(pl.col("value").is_not_null(), *blank)
    # models last: one that only has other numbers is missing, too
    for name, text in sorted(chosen.items(), key=lambda one: one[0] == "model"):
        if text in ("", "*"):
            continue
        patterns, is_excluded = text.removeprefix("!").split("|"), text.startswith("!")
        values = rows[name].unique().to_list()
        lacking = [p for p in patterns if p not in values and "*" not in p and not is_excluded]
        if lacking and name == "model":
            raise IncomparableError(f"no number of {', '.join(lacking)}")
        fitting = [v for v in values if any(fnmatchcase(v, p) for p in patterns) != is_excluded]
        rows = rows.filter(pl.col(name).is_in(fitting))
    if side.scale:
        size, top = pl.col("parameters"), pl.col("parameters").max()
        rows = rows.filter(size == top if side.scale == "largest" else size < top)
    if not rows.height:
        raise IncomparableError(f"no number with {replace(side, reduced=())}")
    return rows


def _places(
    side: Side | float,
    results: pl.DataFrame,
    per: Sequence[str],
    answers: RunAnswers | None,
    like: Mapping[Any, Measured] | None = None,
) -> dict[Any, Measured]:
    """Return a side's number for each value of `per`; a plain number is repeated as in `like`."""
    if not isinstance(side, Side):
        return dict.fromkeys(like or (), Measured(side, side, side, 0))
    dimensions = list(per)
    for _, names in side.reduced:
        dimensions += [n for n in names if n not in dimensions]
    held: dict[Any, list[Row]] = {}
    for row in select(side, results).iter_rows(named=True):
        held.setdefault(tuple(row[d] for d in dimensions), []).append(row)
    for one, *others in held.values():
        if others:
            differ = [d for d in (*DIMENSIONS, *SETTING) if one[d] != others[0][d]]
            parts = ", ".join(f"{d} ({one[d]}, {others[0][d]})" for d in differ)
            raise IncomparableError(f"several numbers in one place, which differ in {parts}")
    numbers = {key: _measured(rows[0], answers) for key, rows in held.items()}
    for way, names in side.reduced:
        kept = [d for d in dimensions if d not in names]
        numbers = _reduce(numbers, way, [dimensions.index(d) for d in kept])
        dimensions = kept
    # the result must not depend on the order of RESULTS
    return dict(sorted(numbers.items()))


def _measured(row: Row, answers: RunAnswers | None) -> Measured:
    """Convert a row of RESULTS: bounds only for 95 % estimates; EXACT numbers are their own."""
    low, high = row["low"], row["high"]
    draws = answers.draws(row) if answers else None
    if row["interval"] not in ESTIMATED:
        low = high = None
    if row["interval"] == "none" and row["kind"] == BASELINE and row["model"] in EXACT:
        low = high = row["value"]
    return Measured(row["value"], low, high, marks.size(row), (row,), draws=draws)


def _reduce(numbers: Mapping[Any, Measured], way: str, kept: Sequence[int]) -> dict[Any, Measured]:
    """Reduce the numbers over the key positions not in `kept`: highest, lowest or mean.

    The result keeps the rows of all of them. Bounds of a mean are the means of the bounds, which is
    valid under any dependence; those of a maximum are its own until it is compared (`_widen`).
    """
    groups: dict[Any, list[Measured]] = {}
    for key, number in sorted(numbers.items()):
        groups.setdefault(tuple(key[i] for i in kept), []).append(number)
    reduced = {}
    for key, group in groups.items():
        rows = tuple(row for number in group for row in number.rows)
        if way == "mean":
            bounded = _mean([(x.value, x.low, x.high) for x in group])
            tried = max(x.highest_of for x in group), max(x.lowest_of for x in group)
            n, draws = min(x.n for x in group), _mean_draws([x.draws for x in group])
            reduced[key] = Measured(*bounded, n, rows, *tried, draws)
        else:
            choose, count = {"max": (max, "highest_of"), "min": (min, "lowest_of")}[way]
            tried_all = sum(getattr(x, count) for x in group)
            first = choose(group, key=lambda x: x.value)
            reduced[key] = replace(first, rows=rows, **{count: tried_all})
    return reduced


#: numbers by the values of the dimensions that identify them
Numbers = dict[Any, Measured]
Bounded = tuple[float, float | None, float | None]


def _mean(numbers: Sequence[Bounded]) -> Bounded:
    values, lows, highs = zip(*numbers, strict=True)
    count = len(values)
    has_bounds = None not in lows and None not in highs
    low, high = (sum(lows) / count, sum(highs) / count) if has_bounds else (None, None)
    return sum(values) / count, low, high


def _mean_draws(draws: Sequence[Draws | None]) -> Draws | None:
    """Average draws; the degrees of freedom are the fewest of the numbers."""
    known = [one for one in draws if one is not None]
    if len(known) < len(draws):
        return None
    values = np.mean([one.values for one in known], axis=0)
    return Draws(values, min(one.degrees_of_freedom for one in known))


def _widen(bounded: Bounded, highest_of: int, lowest_of: int) -> Bounded:
    """Widen the bounds of a number that was chosen as the highest or lowest of several.

    A maximum errs only upwards, so its lower bound is that of a one-sided test at 5 % among that
    many (Bonferroni); a minimum's upper bound likewise.
    """
    value, low, high = bounded
    if low is None or high is None:
        return bounded
    down, up = (max(1.0, float(ndtri(1 - 0.05 / n)) / Z) for n in (highest_of, lowest_of))
    return value, value - down * (value - low), value + up * (high - value)


def _tried(a: Measured, b: Measured) -> tuple[int, int]:
    """Return of how many differences a - b is the highest, and the lowest."""
    return a.highest_of * b.lowest_of, a.lowest_of * b.highest_of


def _apart(a: Measured, b: Measured) -> Bounded:
    """Return a - b with the interval that follows from both (MOVER: Newcombe 1998, method 10), as
    if they were from different items: too wide if they share items."""
    gap = a.value - b.value
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return gap, None, None
    down = hypot(a.value - a.low, b.high - b.value)
    up = hypot(a.high - a.value, b.value - b.low)
    return _widen((gap, gap - down, gap + up), *_tried(a, b))


Pairs = Sequence[tuple[Measured, Measured]]


def _difference(pairs: Pairs) -> Bounded:
    """Mean of a - b: paired if the items of all sides are known and the draws are not all equal."""
    one, other = (_mean_draws([pair[place].draws for pair in pairs]) for place in (0, 1))
    bounds = None
    if one is not None and other is not None:
        fewest = min(one.degrees_of_freedom, other.degrees_of_freedom)
        bounds = of_draws(one.values - other.values, degrees_of_freedom=fewest)
    if bounds:
        gap = sum(a.value - b.value for a, b in pairs) / len(pairs)
        highest_of, lowest_of = map(max, zip(*(_tried(a, b) for a, b in pairs), strict=True))
        return _widen((gap, bounds.low, bounds.high), highest_of, lowest_of)
    return _mean([_apart(a, b) for a, b in pairs])


def _wins(pairs: Pairs) -> Bounded:
    """Proportion of the differing pairs in which a is higher, minus one half, in points."""
    won, lost = sum(a.value > b.value for a, b in pairs), sum(a.value < b.value for a, b in pairs)
    if not won + lost:
        return 0.0, None, None
    bounds = Interval(*wilson(won, won + lost), "wilson").times(100).minus(50)
    return 100 * won / (won + lost) - 50, bounds.low, bounds.high


def _steps(numbers: Mapping[Any, Measured]) -> tuple[Numbers, Numbers]:
    """Pair each model with the next smaller one of its family, under otherwise equal keys.

    The key ends with the model. Raises IncomparableError if no family has two sizes.
    """
    families: dict[Any, list[tuple[float, Any, Measured]]] = {}
    for key, number in numbers.items():
        row = number.rows[0]
        if row["parameters"] is not None:
            place = (*key[:-1], row["family"])
            families.setdefault(place, []).append((row["parameters"], key, number))
    larger, smaller = {}, {}
    for members in families.values():
        ordered = sorted(members, key=lambda member: member[:2])
        for (_, _, low), (_, key, high) in pairwise(ordered):
            larger[key], smaller[key] = high, low
    if not larger:
        raise IncomparableError("no two sizes of one family")
    return larger, smaller


def _near(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """Pair each model of a with each of b whose size is within NEAR, under otherwise equal keys,
    which end with both models. Raises IncomparableError if there is no such pair."""
    one, other = {}, {}
    for key, number in a.items():
        for place, beside in b.items():
            sizes = [x.rows[0]["parameters"] for x in (number, beside)]
            if place[:-1] == key[:-1] and None not in sizes and max(sizes) <= NEAR * min(sizes):
                one[*key, place[-1]], other[*key, place[-1]] = number, beside
    if not one:
        raise IncomparableError("no two models of similar size")
    return one, other


def _correlation(numbers: Mapping[Any, Measured]) -> Outcome:
    """Correlate the numbers with log10 of the parameters over the models of each benchmark, and
    return the mean correlation and interval over the benchmarks that have at least four models of
    several sizes and values. Keys end with the model; n is the fewest models of one benchmark.

    Raises IncomparableError if there is no such benchmark.
    """
    places: dict[Any, list[Measured]] = {}
    for key, number in numbers.items():
        if number.rows[0]["parameters"]:
            places.setdefault(key[:-1], []).append(number)
    most = max(map(len, places.values()), default=0)
    if most < 4:
        raise IncomparableError(f"{most} models of known size; a correlation needs 4")
    held, found = [], []
    for members in places.values():
        sizes = np.array([log10(x.rows[0]["parameters"]) for x in members])
        values = np.array([x.value for x in members])
        if len(members) >= 4 and np.ptp(sizes) and np.ptp(values):
            r = float(np.clip(np.corrcoef(sizes, values)[0, 1], -1, 1))
            found.append((r, *fisher(r, len(members))[:2]))
            held.append(members)
    if not found:
        raise IncomparableError("models of one size, or of one value")
    r, low, high = _mean(found)
    every = [x for members in held for x in members]
    return Outcome(
        a=r, b=0.0, value=r, low=low, high=high,
        n=min(map(len, held)), pairs=len(every), values=tuple((one[0], 0.0) for one in found),
        sides={"a": tuple(row for x in every for row in x.rows), "b": ()},
    )  # fmt: skip
