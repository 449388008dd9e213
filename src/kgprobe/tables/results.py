"""RESULTS: every measured number is one row, and its dimensions are columns.

    rows = [Number(benchmark="bear_big", model="bert-base-cased", method="sentence",
                   metric="accuracy", value=18.4, n=7731, interval=Interval(17.5, 19.3, "wilson"))]
    schema.write(frame("bear", rows), schema.RESULTS, path)

Dimensions are never joined into labels, so nothing has to be parsed: tables, figures, the report
and the exports are views of these rows (tables/views.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe import schema
from kgprobe.contracts import SETTING
from kgprobe.metrics import intervals
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.metrics.tests import detectable, exchange_error, exchange_p, holm

#: columns that identify a number, in addition to the settings of contracts.SETTING
DIMENSIONS = ("paper", "benchmark", "group", "model", "prompt", "method", "metric", "slice")


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number. Dimensions that do not apply are ""; `setting` are the columns of
    contracts.SETTING that apply.

    `value` is None if undefined; numerator and denominator may show why. `published`: the figure
    that `source` (a table, a figure, a page) prints for the same model, data and metric.
    """

    metric: str = ""
    n: int = 0
    value: float | None = None
    benchmark: str = ""
    group: str = ""
    model: str = ""
    prompt: str = ""
    method: str = ""
    slice: str = ""
    setting: Mapping[str, str | int | float] = field(default_factory=dict)
    interval: Interval | None = None
    numerator: float | None = None
    denominator: float | None = None
    published: float | None = None
    source: str | None = None

    def but(self, **changes: Any) -> "Number":
        """Return a copy with other values; `setting` is merged."""
        setting = {**self.setting, **changes.pop("setting", {})}
        return replace(self, setting=setting, **changes)


def proportion(count: float, n: float) -> dict[str, Any]:
    """Return value (per cent), n and Wilson's interval of `count` among `n`; no value for n = 0."""
    if not n:
        return {"n": 0, "numerator": 0.0, "denominator": 0.0}
    return {
        "value": 100 * count / n,
        "n": n,
        "interval": Interval(*wilson(count, n), "wilson").times(100),
    }


def hit_rate(hits: NDArray[np.float64], scale: float = 100) -> dict[str, Any]:
    """Return value, n and Wilson's interval of hits in 0..1 (fractional: expected under ties)."""
    bounds = intervals.of_hits(hits).times(scale)
    return {"value": scale * float(hits.mean()), "n": len(hits), "interval": bounds}


def family(tested: Sequence[tuple[Number, NDArray[np.float64]]]) -> Iterator[Number]:
    """Yield for each of a family of tested differences its p after Holm's correction over all of
    them, and the minimum difference that 80 of 100 samples of this size would detect, in per cent
    (null if both sides answer every item alike). `tested`: what is compared, each item's
    difference, -1 to 1."""
    errors = [exchange_error(gaps) for _, gaps in tested]
    p_values = holm([exchange_p(gaps) for _, gaps in tested])
    for (of, _), error, p in zip(tested, errors, p_values, strict=True):
        yield of.but(metric="p after Holm", value=p)
        least = 100 * detectable(error) if error else None
        yield of.but(metric="detectable difference", value=least)


def as_published(value: float | None, source: str) -> dict[str, Any]:
    """Return the fields of a paper's figure and its location; both None if there is none."""
    return {"published": value, "source": None if value is None else source}


def frame(paper: str, numbers: Iterable[Number]) -> pl.DataFrame:
    """Build and check the RESULTS frame of a paper's numbers.

    Raises ContractError if two numbers have the same dimensions, ValueError for an unknown key of a
    setting or a published figure without its source.
    """
    rows = [_row(paper, number) for number in numbers]
    table = pl.DataFrame(rows, schema=dict(schema.RESULTS.columns))
    schema.check(table, schema.RESULTS)
    return table


def _row(paper: str, number: Number) -> dict[str, object]:
    unknown = sorted(set(number.setting) - set(SETTING))
    if unknown:
        raise ValueError(f"{number.metric}: setting {unknown}; valid: {', '.join(SETTING)}")
    if (number.published is None) != (number.source is None):
        raise ValueError(f"{number.metric} of {number.model}: a published figure needs its source")
    low, high, kind = number.interval or (None, None, "none")
    fields = {**vars(number), **{name: str(number.setting.get(name, "")) for name in SETTING}}
    del fields["setting"]
    return {
        **fields,
        "paper": paper,
        "value": None if number.value is None else float(number.value),
        "low": low,
        "high": high,
        "interval": kind,
    }


def read(paths: Iterable[str | Path]) -> pl.DataFrame:
    """Read RESULTS of several files into one frame. Raises ContractError for other files, including
    RESULTS of another version."""
    return pl.concat([schema.read(path, schema.RESULTS) for path in paths])


def plain() -> pl.Expr:
    """Select rows of RESULTS without any further setting."""
    return pl.all_horizontal(pl.col(name) == "" for name in SETTING)
