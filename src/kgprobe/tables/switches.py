"""What a number becomes when one switch is turned, all else as the run had it, and what was
expected of that before anything was measured.

    CELLS of the run, CELLS of the other value  --change-->  both values, the paired difference

A value is the weighted mean, over parts and columns, of the ratio of two sums over items: the mean
over items has one part, one column and 1 below each item.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.bootstrap import bootstrap, mean_of_ratios, of_draws

#: part: items are drawn within it; column: what is averaged apart (a scheme); above, below: what an
#: item adds to the sums of the ratio; weight: that of the ratio
CELLS: Mapping[str, type[pl.DataType]] = {
    "part": pl.String,
    "column": pl.String,
    "item": pl.String,
    "above": pl.Float64,
    "below": pl.Float64,
    "weight": pl.Float64,
}
#: what is no change, in points
ROUNDING = 1e-9
#: a direction, and that of turning back
OPPOSITE = {">": "<", "<": ">", "=": "=", "?": "?"}
#: what became of an expectation
SAID, MISSED, UNDECIDED, OPEN = "as expected", "missed", "undecided", "nothing expected"
#: nothing at all moved, where a direction was expected
UNMOVED = "unmoved"
#: the other value leaves nothing to average, or nothing defined
EMPTY = "empty"
HEADER = ("paper", "switch", "value", "other", "direction", "why")


@dataclass(frozen=True)
class Turn:
    """One switch at the run's value and at another one, on one number of one probe."""

    paper: str
    switch: str
    here: str
    other: str
    metric: str
    before: pl.DataFrame
    after: pl.DataFrame
    #: whose number it is: model, benchmark, prompt, method, group
    dimensions: Mapping[str, str] = field(default_factory=dict)


def cells(rows: pl.DataFrame, value: str, **further: Any) -> pl.DataFrame:
    """CELLS of the plain mean of a column over items, `further`: part, column, weight (1)."""
    columns = {"part": pl.lit(""), "column": pl.lit(""), "weight": pl.lit(1.0), **further}
    frame = rows.select("item", above=pl.col(value).cast(pl.Float64), below=pl.lit(1.0), **columns)
    return as_cells(frame)


def as_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of CELLS, in their types."""
    return frame.select(pl.col(name).cast(kind) for name, kind in CELLS.items())


def change(before: pl.DataFrame, after: pl.DataFrame, seed: int = 0) -> dict[str, Any]:
    """value, turned, change, low, high, interval, n (distinct items of either side), of CELLS.

    The bootstrap draws items of either side within their part, the same for both sides, so that the
    difference is paired where both have an item. No bounds where no draw differs: nothing moved, or
    no part has two items that differ. Raises ValueError for an item that stands twice in a column.
    """
    sides = [
        frame.select(pl.lit(n).alias("side"), *CELLS) for n, frame in enumerate((before, after))
    ]
    rows = pl.concat(sides)
    key = ["side", "column", "part", "item"]
    if rows.select(key).is_duplicated().any():
        row = rows.filter(pl.struct(key).is_duplicated()).row(0, named=True)
        raise ValueError(f"part {row['part']!r}, column {row['column']!r}: item {row['item']!r} "
                         "stands twice")  # fmt: skip
    units = rows.select("part", "item").unique().sort("part", "item").with_row_index("at")
    columns = rows.select("side", "column").unique().sort("side", "column").with_row_index("to")
    placed = rows.join(units, on=["part", "item"]).join(columns, on=["side", "column"])
    grids = [np.zeros((units.height, columns.height)) for _ in range(2)]
    for grid, name in zip(grids, ("above", "below"), strict=True):
        grid[placed["at"].to_numpy(), placed["to"].to_numpy()] = placed[name].to_numpy()
    boot = bootstrap(np.hstack(grids), units["part"].to_list(), seed=seed)
    weights = [np.zeros((len(boot.strata), columns.height)) for _ in range(2)]
    for side, part, to, weight in placed.select("side", "part", "to", "weight").unique().rows():
        weights[side][boot.strata.index(part), to] = weight
    value, turned = (float(mean_of_ratios(boot.sums, w)) for w in weights)
    drawn = [mean_of_ratios(boot.drawn, w) for w in weights]
    bounds = of_draws(_finite(drawn[1] - drawn[0]), f"paired {boot.kind}")
    low, high, kind = bounds or (None, None, "none")
    # sums in another order differ in their last bits
    moved = turned - value if abs(turned - value) > ROUNDING else 0.0
    return {"value": value, "turned": turned, "change": moved, "low": low, "high": high,
            "interval": kind, "n": units["item"].n_unique()}  # fmt: skip


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draws in which both sides are defined."""
    return values[np.isfinite(values)]


def expected(
    table: Sequence[Mapping[str, str]], paper: str, switch: str, here: str, other: str
) -> tuple[str, str]:
    """(direction, why) of turning a switch from `here` to `other`: > the number grows, < it falls,
    = it stays, ? nothing can be said. A row for the way back is read backwards; none: ? and "".
    """
    for row in table:
        if (row["paper"], row["switch"]) == (paper, switch):
            if (row["value"], row["other"]) == (here, other):
                return row["direction"], row["why"]
            if (row["value"], row["other"]) == (other, here):
                return OPPOSITE[row["direction"]], row["why"]
    return "?", ""


def verdict(direction: str, effect: Mapping[str, Any]) -> str:
    """What a change (`change`) says of the direction that was expected.

    As expected, or missed: the interval lies on that side of 0, or on the other one; `=` is missed
    where it leaves 0 out. Without interval nothing moved (unmoved; for `=` as expected), or nothing
    is decided.
    """
    if direction not in OPPOSITE:
        raise ValueError(f"direction {direction!r}; legal: {', '.join(OPPOSITE)}")
    if direction == "?":
        return OPEN
    low, high = effect["low"], effect["high"]
    if low is None:
        # nothing is known of the width of what moved
        still = SAID if direction == "=" else UNMOVED
        return still if effect["change"] == 0 else UNDECIDED
    if direction == "=":
        return MISSED if low > 0 or high < 0 else UNDECIDED
    if direction == "<":
        low, high = -high, -low
    return SAID if low > 0 else MISSED if high < 0 else UNDECIDED


def measured(
    turns: Sequence[Turn], table: Sequence[Mapping[str, str]], seed: int = 0
) -> list[dict[str, Any]]:
    """A row for each turn: switch, value here and other, whose number, what changed, what was
    expected and the verdict; one that leaves nothing has no change, and says so."""
    rows = []
    for turn in turns:
        if not turn.before.height:
            continue
        is_empty = not turn.after.height
        effect = change(turn.before, turn.before if is_empty else turn.after, seed)
        if is_empty:
            effect |= {"turned": None, "change": None}
        direction, why = expected(table, turn.paper, turn.switch, turn.here, turn.other)
        fields = {"switch": turn.switch, "here": turn.here, "other": turn.other, **turn.dimensions}
        came = EMPTY if is_empty else verdict(direction, effect)
        rows.append({**fields, "metric": turn.metric, **effect, "expected": direction,
                     "verdict": came, "why": why})  # fmt: skip
    return rows
