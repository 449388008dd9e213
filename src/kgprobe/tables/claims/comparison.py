"""What a claim compares: two selections of RESULTS, paired, and one difference with its interval.

A comparison is five cells of `resources/published/claims.tsv`:

    scope   metric=R@1; group=TP; choice=oracle      what both sides are chosen by
    a       max=model prompt method                  what one side is, beyond that
    b       kind=baseline; model=frequency
    per     benchmark                                a pair for each of its values
    read    difference

A selection names dimensions of RESULTS, or `kind` and `family` of the model, each with patterns:
`a|b` either, `*` any text, `!x` anything else. A dimension that is not named is any, but `group`,
`slice` and further choices, which are "" then, and `kind`, which is any model that has been trained
elsewhere: what was taught here says nothing of the world. `scale=largest` are the numbers of the
model with the most parameters, `scale=smaller` those of all others.
`max=DIMENSIONS` keeps the highest number over these dimensions, `min=` the lowest; `mean=` averages
after that. A side may be one number: `100`.

`X less Y` is a difference at each place, reduced after that; Y are the cells of X but for those it
names. Four more cells choose: `value=LOW..HIGH` keeps the numbers from LOW to HIGH (either may be
left out), `commonest=5` the five groups of a benchmark with the most items, `of=low` and `of=high`
take a bound in place of its number. `every=DIMENSIONS` is a number that stands at each of their
values.

How the pairs are read:

    difference        mean of a - b
    gain              mean of a / b - 1, in per cent
    wins              share of the pairs that differ where a is the higher, less one half
    agree             share of the pairs where a and b have one sign, less one half
    highest           the highest a - b, with bounds for the highest of so many
    spread            standard deviation of a - b over the last dimension of per, within the others,
                      beyond what the intervals explain
    steps             mean of a model less the next smaller one of its family
    near              mean of a - b over models of similar size
    pearson spearman  correlation of a with the logarithm of the parameters
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from math import atanh, hypot, inf, log10, sqrt, tanh
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import chi2, pearsonr, spearmanr

from kgprobe.contracts import SETTING
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.tables.results import DIMENSIONS

#: kinds of models that can be asked what they know of the world
TRAINED = "masked|causal|seq2seq|api"
#: baselines of all papers, which the sheet of models does not have
BASELINE, CONTROL = "baseline", "control"
#: what may be named in a selection -> what it is where it is not named
NAMED: Mapping[str, str] = {
    **dict.fromkeys((d for d in DIMENSIONS if d != "paper"), "*"),
    **dict.fromkeys(("group", "slice", *SETTING), ""),
    "kind": TRAINED,
    "family": "*",
}
REDUCED = ("max", "min", "mean")
READINGS = (
    "difference", "gain", "wins", "agree", "highest", "spread", "steps", "near", "pearson",
    "spearman",
)  # fmt: skip
#: what of a row a side takes: its value, or a bound of it
TAKEN = ("value", "low", "high")
#: what `interval` says of bounds that hold 95 % of an estimate from items drawn independently or in
#: pairs. The range of subsets, the spread of random orders, one standard error and a mean of other
#: bounds are none
ESTIMATED = (
    "wilson", "newcombe", "student", "bootstrap", "cluster bootstrap", "paired bootstrap",
    "paired cluster bootstrap",
)  # fmt: skip
#: what follows from the set alone, and is exact: counts, which have no model, and a random guess.
#: The majority and the frequency baseline are right on some items and not on others, as models are
EXACT = ("", "random")
#: models of similar size: the larger has at most so many times the parameters of the smaller
NEAR = 1.25
#: normal quantile of the 95 % that every interval has
Z = 1.959963984540054

Row = Mapping[str, Any]


class ComparisonError(ValueError):
    """A comparison is written wrongly; the message says where and what is legal."""


class IncomparableError(Exception):
    """These RESULTS do not have what a comparison needs; the message says what."""


@dataclass(frozen=True)
class Side:
    """One side: patterns by dimension, then what is reduced, in this order; or a `number`.

    `scale`: largest, smaller, or ""; `between`: what a number may be; `commonest`: how many groups,
    0 for all; `of`: what is taken of a row (TAKEN); `every`: dimensions at whose values it stands;
    `less`: what is taken off at every place.
    """

    where: Mapping[str, str] = field(default_factory=dict)
    scale: str = ""
    reduced: Sequence[tuple[str, tuple[str, ...]]] = ()
    number: float | None = None
    between: tuple[float, float] = (-inf, inf)
    commonest: int = 0
    of: str = "value"
    every: tuple[str, ...] = ()
    less: "Side | None" = None


@dataclass(frozen=True)
class Comparison:
    """Two sides, the dimensions that make their pairs, and how the pairs are read (READINGS)."""

    a: Side
    b: Side
    per: tuple[str, ...]
    read: str


@dataclass(frozen=True)
class Measured:
    """A value with its bounds (None: none was computed), the items behind it, the rows it is from.

    `n`: the fewest items behind one of its numbers; `less`: rows that were taken off; `highest_of`,
    `lowest_of`: of how many numbers it was chosen as the highest, the lowest.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    rows: tuple[Row, ...] = ()
    less: tuple[Row, ...] = ()
    highest_of: int = 1
    lowest_of: int = 1


@dataclass(frozen=True)
class Outcome:
    """What a comparison finds: means of both sides over `pairs`, the difference as it is read.

    `low`, `high`: 95 %, None where a number has no interval. `n`: the fewest items behind one of
    the numbers; where pairs are counted or models correlated, how many these are. `sides`: the rows
    of a, of b, and of what is taken off them (`a less`, `b less`); `values`: those of every pair.
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


def parse(scope: str, a: str, b: str, per: str, read: str) -> Comparison:
    """The comparison of five cells. Raises ComparisonError naming a part that is not legal."""
    names = tuple(per.split())
    for name in names:
        _legal(name, NAMED, "per")
    _legal(read, READINGS, "read")
    found = Comparison(_side(scope, a), _side(scope, b), names, read)
    if found.a.every:
        raise ComparisonError("every: a has no other side whose values it could stand at")
    return found


def _side(scope: str, text: str) -> Side:
    if re.fullmatch(r"-?\d+(\.\d+)?", text.strip()):
        return Side(number=float(text))
    own, is_less, other = text.partition(" less ")
    side = _read(Side(), f"{scope};{own}")
    if not is_less:
        return side
    taken = _read(replace(side, reduced=(), between=(-inf, inf), every=()), other)
    if taken.reduced:
        raise ComparisonError(f"{other!r}: a difference is reduced as a whole, before less")
    return replace(side, less=taken)


def _read(side: Side, text: str) -> Side:
    """`side` with the cells of `text`, which stand before those it has."""
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, sign, value = part.partition("=")
        if not sign:
            raise ComparisonError(f"{part!r}: expected DIMENSION=PATTERN or a number")
        if name in REDUCED or name == "every":
            dimensions = tuple(value.split())
            for dimension in dimensions:
                _legal(dimension, NAMED, name)
            if name == "every":
                side = replace(side, every=dimensions)
            else:
                side = replace(side, reduced=(*side.reduced, (name, dimensions)))
        elif name in WAYS:
            side = replace(side, **{name if name != "value" else "between": WAYS[name](value)})
        else:
            _legal(name, [*NAMED, *WAYS], "a selection")
            side = replace(side, where={**side.where, name: value})
    return side


def _scale(value: str) -> str:
    _legal(value, ("largest", "smaller"), "scale")
    return value


def _of(value: str) -> str:
    _legal(value, TAKEN, "of")
    return value


def between(value: str) -> tuple[float, float]:
    """The numbers from LOW to HIGH, either of which may be left out."""
    found = re.fullmatch(r"(-?[\d.]+)?\.\.(-?[\d.]+)?", value)
    if not found:
        raise ComparisonError(f"value: {value!r}; legal: LOW..HIGH")
    low, high = found.groups()
    return float(low or -inf), float(high or inf)


def _commonest(value: str) -> int:
    if not value.isdecimal() or value == "0":
        raise ComparisonError(f"commonest: {value!r}; legal: a number of groups")
    return int(value)


#: cells of a selection that are no dimensions, and how each is read
WAYS: Mapping[str, Callable[[str], Any]] = {
    "scale": _scale,
    "of": _of,
    "value": between,
    "commonest": _commonest,
}


def _legal(name: str, names: Sequence[str] | Mapping[str, Any], place: str) -> None:
    if name not in names:
        raise ComparisonError(f"{place}: {name!r}; legal: {', '.join(names)}")


def known(results: pl.DataFrame, sheet: Mapping[str, Mapping[str, str]]) -> pl.DataFrame:
    """RESULTS with kind, family and parameters of models.

    `sheet`: the models by name. Whose `source` is control is of that kind; what is not in the sheet
    is a baseline. `parameters` are millions, null where the sheet does not say.
    """
    names = results["model"].unique().to_list()
    kinds = {name: _kind(sheet.get(name)) for name in names}
    sizes = {name: _number((sheet.get(name) or {}).get("parameters")) for name in names}
    models = pl.col("model")
    return results.with_columns(
        kind=models.replace_strict(kinds, return_dtype=pl.String),
        family=models.replace_strict({n: family(n) for n in names}, return_dtype=pl.String),
        parameters=models.replace_strict(sizes, return_dtype=pl.Float64),
    )


def _kind(row: Mapping[str, str] | None) -> str:
    if row is None:
        return BASELINE
    return CONTROL if row["source"].startswith("control:") else row["kind"]


def _number(text: str | None) -> float | None:
    return float(text) if text else None


def family(model: str) -> str:
    """A model's name without what says its size: models of one family differ in size alone.

    >>> family("bert-large-cased"), family("opt-6.7b"), family("gpt2-xl")
    ('bert-cased', 'opt', 'gpt2')
    """
    words = re.split(r"[-_]", model.casefold())
    size = r"tiny|mini|small|medium|base|large|xl|xxl|\d+(\.\d+)?[mb]"
    return "-".join(word for word in words if not re.fullmatch(size, word)) or model


def evaluate(comparison: Comparison, found: pl.DataFrame) -> Outcome:
    """What `comparison` finds in RESULTS as `known` makes them.

    Raises IncomparableError where a side has no number, a model that is named is not there, several
    numbers fall into one place, or too few pairs are left.
    """
    a, b = comparison.a, comparison.b
    if comparison.read in ("pearson", "spearman"):
        return _correlation(_places(a, found, (*comparison.per, "model")), comparison.read)
    by_model = (*comparison.per, "model")
    if comparison.read == "steps":
        one, other = _steps(_places(a, found, by_model))
    elif comparison.read == "near":
        one, other = _near(_places(a, found, by_model), _places(b, found, by_model))
    else:
        one = _places(a, found, comparison.per)
        other = _places(b, found, comparison.per, like=one)
    keys = [key for key in one if key in other]
    if not keys:
        per = ", ".join(comparison.per)
        raise IncomparableError(f"the two sides share no {per}")
    pairs = [(one[key], other[key]) for key in keys]
    if comparison.read == "spread":
        value, low, high = _spread(pairs, [key[:-1] for key in keys])
    else:
        value, low, high = MEASURES[comparison.read](pairs)
    fewest = min(side.n for pair in pairs for side in pair if side.rows)
    return Outcome(
        a=sum(x.value for x, _ in pairs) / len(pairs),
        b=sum(y.value for _, y in pairs) / len(pairs),
        value=value,
        low=low,
        high=high,
        n=len(pairs) if comparison.read in ("wins", "agree") else fewest,
        pairs=len(pairs),
        sides=_sides(pairs),
        values=tuple((x.value, y.value) for x, y in pairs),
    )


def _sides(pairs: Sequence[tuple[Measured, Measured]]) -> dict[str, tuple[Row, ...]]:
    """The rows of both sides, and of what is taken off them, where something is."""
    found = {}
    for name, numbers in zip("ab", zip(*pairs, strict=True), strict=True):
        found[name] = tuple(row for number in numbers for row in number.rows)
        if less := tuple(row for number in numbers for row in number.less):
            found[f"{name} less"] = less
    return found


def select(side: Side, found: pl.DataFrame) -> pl.DataFrame:
    """The rows of a side. Raises IncomparableError where there is none, or no named model."""
    chosen = {name: side.where.get(name, usual) for name, usual in NAMED.items()}
    blank = [pl.col(name) == "" for name, patterns in chosen.items() if not patterns]
    own = found.filter(pl.col("value").is_not_null(), *blank)
    for name, told in chosen.items():
        patterns = told.split("|")
        if told in ("", "*"):
            continue
        values = own[name].unique().to_list()
        lacking = [p for p in patterns if name == "model" and p not in values and _is_name(p)]
        if lacking:
            raise IncomparableError(f"no number of {', '.join(lacking)}")
        own = own.filter(pl.col(name).is_in([v for v in values if _fits(v, patterns)]))
    if side.scale:
        size, top = pl.col("parameters"), pl.col("parameters").max()
        own = own.filter(size == top if side.scale == "largest" else size < top)
    if side.commonest:
        sizes = own.group_by("benchmark", "group").agg(pl.col("n").max())
        sizes = sizes.sort("benchmark", -pl.col("n"), "group")
        kept = sizes.group_by("benchmark").head(side.commonest)
        own = own.join(kept, on=["benchmark", "group"], how="semi")
    if not own.height:
        words = "; ".join(f"{k}={v}" for k, v in side.where.items())
        of = f" of a {side.scale} model" if side.scale else ""
        raise IncomparableError(f"no number{of} with {words}")
    return own


def _is_name(pattern: str) -> bool:
    return "*" not in pattern and not pattern.startswith("!")


def _fits(value: str, patterns: Sequence[str]) -> bool:
    without = [p[1:] for p in patterns if p.startswith("!")]
    wanted = [p for p in patterns if not p.startswith("!")] or ["*"]
    return any(fnmatchcase(value, p) for p in wanted) and not any(
        fnmatchcase(value, p) for p in without
    )


def _places(
    side: Side, found: pl.DataFrame, per: Sequence[str], like: Mapping[Any, Measured] | None = None
) -> dict[Any, Measured]:
    """The number of a side at each value of `per`; what stands at every value of a dimension, and a
    plain number, stands wherever `like` does."""
    if side.number is not None:
        plain = Measured(side.number, side.number, side.number, 0)
        return dict.fromkeys(like or (), plain)
    dimensions = [d for d in per if d not in side.every]
    for _, names in side.reduced:
        dimensions += [n for n in names if n not in dimensions]
    numbers = _numbers(side, found, dimensions)
    if side.less:
        own = [d for d in dimensions if d not in side.less.every]
        taken = _at_every(_numbers(side.less, found, own), own, dimensions, numbers)
        numbers = {key: _less(numbers[key], taken[key]) for key in numbers if key in taken}
        if not numbers:
            raise IncomparableError(f"what is taken off shares no {', '.join(dimensions)}")
    for way, names in side.reduced:
        kept = [d for d in dimensions if d not in names]
        numbers = _reduced(numbers, way, [dimensions.index(d) for d in kept])
        dimensions = kept
    # the order of RESULTS is no part of a claim
    return dict(sorted(_at_every(numbers, dimensions, per, like or {}).items()))


def _numbers(side: Side, found: pl.DataFrame, dimensions: Sequence[str]) -> dict[Any, Measured]:
    """The number of each row of a side by its place."""
    held: dict[Any, list[Row]] = {}
    for row in select(side, found).iter_rows(named=True):
        held.setdefault(tuple(row[d] for d in dimensions), []).append(row)
    for rows in held.values():
        if len(rows) > 1:
            raise IncomparableError(_several(rows))
    low, high = side.between
    numbers = {key: _measured(rows[0], side.of) for key, rows in held.items()}
    inside = {key: number for key, number in numbers.items() if low <= number.value <= high}
    if not inside:
        raise IncomparableError(f"no number from {low:g} to {high:g}")
    return inside


def _at_every(
    numbers: Mapping[Any, Measured],
    dimensions: Sequence[str],
    wanted: Sequence[str],
    like: Mapping[Any, Measured],
) -> dict[Any, Measured]:
    """Numbers by their `dimensions` at the places of `like`, which has all that are `wanted`."""
    if list(dimensions) == list(wanted):
        return dict(numbers)
    places = [wanted.index(d) for d in dimensions]
    own = {key: tuple(key[i] for i in places) for key in like}
    return {key: numbers[place] for key, place in own.items() if place in numbers}


def _less(a: Measured, b: Measured) -> Measured:
    return Measured(*_apart(a, b), min(a.n, b.n), a.rows, b.rows)


def _measured(row: Row, of: str = "value") -> Measured:
    """A row of RESULTS. What is no estimate of 95 % has no bounds, EXACT numbers are their own. A
    bound that is taken in place of the value has none itself."""
    low, high = row["low"], row["high"]
    if of != "value":
        if row[of] is None:
            raise IncomparableError(f"a number of {row['model']} has no {of} bound")
        return Measured(row[of], None, None, row["n"], (row,))
    if row["interval"] not in ESTIMATED:
        low = high = None
    if row["interval"] == "none" and row["kind"] == BASELINE and row["model"] in EXACT:
        low = high = row["value"]
    return Measured(row["value"], low, high, row["n"], (row,))


def _several(rows: Sequence[Row]) -> str:
    one, other = rows[:2]
    differ = [d for d in (*DIMENSIONS, *SETTING) if one[d] != other[d]]
    told = ", ".join(f"{d} ({one[d]}, {other[d]})" for d in differ)
    return f"several numbers in one place, which differ in {told}"


def _reduced(numbers: Mapping[Any, Measured], way: str, kept: Sequence[int]) -> dict[Any, Measured]:
    """The numbers over what is not at the places `kept` of their keys: highest, lowest or mean.

    Rows of all of them stay with the result. Bounds of a mean are the means of the bounds, which
    holds whatever the numbers have in common; those of a maximum are its own until it is compared
    (`_widened`).
    """
    groups: dict[Any, list[Measured]] = {}
    for key, number in sorted(numbers.items()):
        groups.setdefault(tuple(key[i] for i in kept), []).append(number)
    made = {}
    for key, group in groups.items():
        rows = tuple(row for number in group for row in number.rows)
        less = tuple(row for number in group for row in number.less)
        if way == "mean":
            bounded = _mean([(x.value, x.low, x.high) for x in group])
            tried = max(x.highest_of for x in group), max(x.lowest_of for x in group)
            made[key] = Measured(*bounded, min(x.n for x in group), rows, less, *tried)
        elif way == "max":
            tried_all = sum(x.highest_of for x in group)
            first = max(group, key=lambda x: x.value)
            made[key] = replace(first, rows=rows, less=less, highest_of=tried_all)
        else:
            tried_all = sum(x.lowest_of for x in group)
            first = min(group, key=lambda x: x.value)
            made[key] = replace(first, rows=rows, less=less, lowest_of=tried_all)
    return made


#: numbers by the values of the dimensions that make their places
Numbers = dict[Any, Measured]
Bounded = tuple[float, float | None, float | None]


def _mean(numbers: Sequence[Bounded]) -> Bounded:
    values, lows, highs = zip(*numbers, strict=True)
    count = len(values)
    has_bounds = None not in lows and None not in highs
    low, high = (sum(lows) / count, sum(highs) / count) if has_bounds else (None, None)
    return sum(values) / count, low, high


def _widened(bounded: Bounded, highest_of: int, lowest_of: int) -> Bounded:
    """The bounds of a number that was chosen as the highest or lowest of several.

    A maximum errs upwards alone, so its lower bound is that of a one-sided test at 5 % among so
    many (Bonferroni); a minimum's upper bound likewise.
    """
    value, low, high = bounded
    if low is None or high is None:
        return bounded
    down, up = (max(1.0, float(ndtri(1 - 0.05 / n)) / Z) for n in (highest_of, lowest_of))
    return value, value - down * (value - low), value + up * (high - value)


def _apart(a: Measured, b: Measured) -> Bounded:
    """a - b with the interval that follows from both (MOVER: Newcombe 1998, method 10), as if they
    stood on different items: too wide where they share them."""
    gap = a.value - b.value
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return gap, None, None
    down = hypot(a.value - a.low, b.high - b.value)
    up = hypot(a.high - a.value, b.value - b.low)
    tried = a.highest_of * b.lowest_of, a.lowest_of * b.highest_of
    return _widened((gap, gap - down, gap + up), *tried)


Pairs = Sequence[tuple[Measured, Measured]]


def _difference(pairs: Pairs) -> Bounded:
    return _mean([_apart(a, b) for a, b in pairs])


def _gain(pairs: Pairs) -> Bounded:
    """Mean of a / b - 1 in per cent; bounds from the ends of both intervals."""
    made: list[Bounded] = []
    for a, b in pairs:
        if b.value <= 0:
            raise IncomparableError("no relative gain over 0")
        low = high = None
        if a.low is not None and a.high is not None and b.low and b.high:
            low, high = 100 * (a.low / b.high - 1), 100 * (a.high / b.low - 1)
        tried = a.highest_of * b.lowest_of, a.lowest_of * b.highest_of
        made.append(_widened((100 * (a.value / b.value - 1), low, high), *tried))
    return _mean(made)


def _wins(pairs: Pairs) -> Bounded:
    """Share of the pairs that differ in which a is the higher, less one half; in points."""
    won, lost = sum(a.value > b.value for a, b in pairs), sum(a.value < b.value for a, b in pairs)
    return _over_half(won, won + lost)


def _agree(pairs: Pairs) -> Bounded:
    """Share of the pairs of which both are above 0, below 0 or 0, less one half; in points."""
    return _over_half(sum(np.sign(a.value) == np.sign(b.value) for a, b in pairs), len(pairs))


def _over_half(count: int, n: int) -> Bounded:
    if not n:
        return 0.0, None, None
    bounds = Interval(*wilson(count, n), "wilson").times(100).minus(50)
    return 100 * count / n - 50, bounds.low, bounds.high


def _highest(pairs: Pairs) -> Bounded:
    """The highest difference. Every interval is widened so that all hold together with 95 %
    (Bonferroni), and with them the highest of the lower and of the upper bounds."""
    gaps = [_apart(a, b) for a, b in pairs]
    wider = float(ndtri(1 - 0.025 / len(gaps))) / Z
    value = max(gap for gap, _, _ in gaps)
    bounds = [(g - wider * (g - low), g + wider * (high - g))
              for g, low, high in gaps if low is not None and high is not None]  # fmt: skip
    if len(bounds) < len(gaps):
        return value, None, None
    return value, max(low for low, _ in bounds), max(high for _, high in bounds)


def _spread(pairs: Pairs, strata: Sequence[Any]) -> Bounded:
    """Standard deviation of the differences within strata beyond what their intervals explain, with
    its bounds by the profile of Cochran's Q (Paule and Mandel 1982; Viechtbauer 2007, Q-profile).

    Raises IncomparableError where no stratum has two differences.
    """
    gaps = [_apart(a, b) for a, b in pairs]
    free = len(gaps) - len(set(strata))
    if not free:
        raise IncomparableError("no two numbers to spread")
    value = np.array([gap for gap, _, _ in gaps])
    names = {stratum: i for i, stratum in enumerate(dict.fromkeys(strata))}
    part = np.array([names[stratum] for stratum in strata])
    halves = [(high - low) / 2 for _, low, high in gaps if low is not None and high is not None]
    if len(halves) < len(gaps):
        means = np.bincount(part, value) / np.bincount(part)
        return float(np.sqrt(((value - means[part]) ** 2).sum() / free)), None, None
    error = (np.array(halves) / Z) ** 2

    def q(variance: float) -> float:
        weight = 1 / np.maximum(error + variance, 1e-12)
        means = np.bincount(part, weight * value) / np.bincount(part, weight)
        return float((weight * (value - means[part]) ** 2).sum())

    def beyond(expected: float) -> float:
        if q(0.0) <= expected:
            return 0.0
        # no variance above the sum of squares over what is expected has as large a Q
        most = ((value - value.mean()) ** 2).sum() / expected + 1e-9
        return sqrt(brentq(lambda variance: q(variance) - expected, 0.0, most, xtol=1e-12))

    return beyond(free), beyond(chi2.ppf(0.975, free)), beyond(chi2.ppf(0.025, free))


MEASURES: Mapping[str, Callable[[Pairs], Bounded]] = {
    "difference": _difference,
    "steps": _difference,
    "near": _difference,
    "gain": _gain,
    "wins": _wins,
    "agree": _agree,
    "highest": _highest,
}


def _steps(numbers: Mapping[Any, Measured]) -> tuple[Numbers, Numbers]:
    """Each model and the next smaller one of its family, in the same place.

    The key ends with the model. Raises IncomparableError where no family has two sizes.
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
    """Each model of a with each of b in the same place whose sizes are within NEAR; keys end with
    both models. Raises IncomparableError where there is no such pair."""
    one, other = {}, {}
    for key, number in a.items():
        for place, beside in b.items():
            sizes = [x.rows[0]["parameters"] for x in (number, beside)]
            if place[:-1] == key[:-1] and None not in sizes and max(sizes) <= NEAR * min(sizes):
                one[*key, place[-1]], other[*key, place[-1]] = number, beside
    if not one:
        raise IncomparableError("no two models of similar size")
    return one, other


def _correlation(numbers: Mapping[Any, Measured], method: str) -> Outcome:
    """Correlation of the numbers with log10 of the parameters over models, and its interval.

    Raises IncomparableError for fewer than four models, or values that are all alike.
    """
    held = [x for x in numbers.values() if x.rows[0]["parameters"]]
    if len(held) < 4:
        raise IncomparableError(f"{len(held)} models of known size; a correlation needs 4")
    sizes = np.array([log10(x.rows[0]["parameters"]) for x in held])
    values = np.array([x.value for x in held])
    if np.ptp(sizes) == 0 or np.ptp(values) == 0:
        raise IncomparableError("models of one size, or of one value")
    found = (pearsonr if method == "pearson" else spearmanr)(sizes, values).statistic
    r = float(np.clip(found, -1, 1))
    low, high = fisher(r, len(held), method)
    return Outcome(
        a=r, b=0.0, value=r, low=low, high=high,
        n=len(held), pairs=len(held), values=((r, 0.0),),
        sides={"a": tuple(row for x in held for row in x.rows), "b": ()},
    )  # fmt: skip


def fisher(r: float, n: int, method: str) -> tuple[float, float]:
    """95 % bounds of a correlation over `n` models by Fisher's transform, of ranks (method
    spearman) with the standard error of Bonett and Wright (2000)."""
    # at 1 itself the transform has no value
    centre = atanh(min(max(r, -1 + 1e-12), 1 - 1e-12))
    half = Z * sqrt((1 + (r * r / 2 if method == "spearman" else 0)) / (n - 3))
    return tanh(centre - half), tanh(centre + half)
