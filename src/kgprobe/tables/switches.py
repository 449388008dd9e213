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

from kgprobe.metrics.bootstrap import of_draws
from kgprobe.tables.estimate import weighted_means

#: what is no change, in points
ROUNDING = 1e-9
#: a direction, and that of turning back
OPPOSITE = {">": "<", "<": ">", "=": "=", "?": "?"}
#: what became of an expectation
CONFIRMED, MISSED, UNDECIDED, OPEN = "as expected", "missed", "undecided", "nothing expected"
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


def change(before: pl.DataFrame, after: pl.DataFrame, seed: int = 0) -> dict[str, Any]:
    """value, turned, change, low, high, interval, n (distinct items of either side), of CELLS.

    The difference is paired where both sides have an item. No bounds where no draw differs: nothing
    moved, or no part has two items that differ. Raises ValueError as `weighted_means` does.
    """
    (value, turned), drawn, units = weighted_means([before, after], seed)
    gaps = drawn[1] - drawn[0]
    # draws in which both sides are defined
    low, high, kind = of_draws(gaps[np.isfinite(gaps)], "paired bootstrap") or (None, None, "none")
    # sums in another order differ in their last bits
    moved = turned - value if abs(turned - value) > ROUNDING else 0.0
    return {"value": value, "turned": turned, "change": moved, "low": low, "high": high,
            "interval": kind, "n": units["item"].n_unique()}  # fmt: skip


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
        still = CONFIRMED if direction == "=" else UNMOVED
        return still if effect["change"] == 0 else UNDECIDED
    if direction == "=":
        return MISSED if low > 0 or high < 0 else UNDECIDED
    if direction == "<":
        low, high = -high, -low
    return CONFIRMED if low > 0 else MISSED if high < 0 else UNDECIDED


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
