"""One number over judged answers: its value, n and 95 % interval, with the one bootstrap behind.

A frame has a row per item, in the order of items, and values of 0 to 1:

    estimate(rows, "hit")                                       mean, in per cent
    estimate(rows, "hit", stratum="relation", is_macro=True)    mean of the relations' means
    estimate(rows, "hit", less="other")                         mean of paired differences
    estimate(rows, "right", over="asked")                       ratio of two sums
    estimate(rows, "hit", weight="asked")                       weighted mean, of a part of the rows

A mean over several strata and columns, each with a weight, is one of CELLS (`weighted_means`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.bootstrap import bootstrap, mean_of_ratios
from kgprobe.metrics.intervals import Interval, wilson

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


def estimate(
    rows: pl.DataFrame,
    value: str,
    *,
    less: str = "",
    over: str = "",
    weight: str = "",
    stratum: str = "",
    cluster: str = "",
    is_macro: bool = False,
    is_proportion: bool = False,
    seed: int = 0,
    scale: float = 100,
) -> dict[str, Any]:
    """Value, n and interval of a Number, `scale` times what the columns hold.

    Rows are drawn within their `stratum`, or by whole clusters, which n then counts. `weight`: what
    a row counts in a mean or difference; those of 0 are drawn as well, so that how many of the
    others come varies, and are not in n. `is_macro`: strata weigh the same; `is_proportion`: a mean
    of hits, whose interval is Wilson's, as it is where no draw of a mean differs. A difference and
    a ratio have no interval there. Raises ValueError for a ratio over 0 and weights that are all 0.
    """
    strata, clusters = (rows[name].to_list() if name else None for name in (stratum, cluster))
    columns = [pl.col(name) * (pl.col(weight) if weight else 1) for name in (value, less) if name]
    columns += [pl.col(name).alias("below") for name in (over, weight) if name]
    boot = bootstrap(rows.select(columns).to_numpy(), strata, clusters, seed)
    weights = boot.macro() if is_macro else None
    n = rows[cluster].n_unique() if cluster else rows.height
    if weight:
        n = rows.filter(pl.col(weight) > 0).height
        result, interval = boot.ratio(0, 2, less=1) if less else boot.ratio(0, 1)
        if not less and (is_proportion or not interval):
            interval = Interval(*wilson(min(result, 1.0) * n, n), "wilson")
    elif over:
        result, interval = boot.ratio(0, 1)
    elif less:
        result, interval = boot.difference(0, 1, weights)
    else:
        result, interval = boot.mean(0, weights), boot.interval(0, weights, is_proportion)
    return {"value": scale * result, "n": n, "interval": interval and interval.times(scale)}


def cells(rows: pl.DataFrame, value: str, **further: Any) -> pl.DataFrame:
    """CELLS of the plain mean of a column over items, `further`: part, column, weight (1)."""
    columns = {"part": pl.lit(""), "column": pl.lit(""), "weight": pl.lit(1.0), **further}
    return as_cells(rows.select("item", above=pl.col(value), below=pl.lit(1.0), **columns))


def as_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of CELLS, in their types."""
    return frame.select(pl.col(name).cast(kind) for name, kind in CELLS.items())


def weighted_means(
    sides: Sequence[pl.DataFrame], seed: int = 0
) -> tuple[list[float], list[NDArray[np.float64]], pl.DataFrame]:
    """The weighted mean, over parts and columns, of the ratio of two sums over items, for each of
    several CELLS: its value, its value in every draw, and the (part, item) that were drawn.

    Items are drawn within their part, the same for all sides. Raises ValueError for an item that
    stands twice in a column.
    """
    rows = pl.concat(frame.select(pl.lit(n).alias("side"), *CELLS) for n, frame in enumerate(sides))
    twice = rows.filter(pl.struct("side", "column", "part", "item").is_duplicated())
    if twice.height:
        part, column, item = twice.select("part", "column", "item").row(0)
        raise ValueError(f"part {part!r}, column {column!r}: item {item!r} stands twice")
    units = rows.select("part", "item").unique().sort("part", "item").with_row_index("at")
    columns = rows.select("side", "column").unique().sort("side", "column").with_row_index("to")
    placed = rows.join(units, on=["part", "item"]).join(columns, on=["side", "column"])
    grids = np.zeros((2, units.height, columns.height))
    for grid, name in zip(grids, ("above", "below"), strict=True):
        grid[placed["at"].to_numpy(), placed["to"].to_numpy()] = placed[name].to_numpy()
    boot = bootstrap(np.hstack([*grids]), units["part"].to_list(), seed=seed)
    weights = np.zeros((len(sides), len(boot.strata), columns.height))
    for side, part, to, weight in placed.select("side", "part", "to", "weight").unique().rows():
        weights[side, boot.strata.index(part), to] = weight
    values = [float(mean_of_ratios(boot.sums, own)) for own in weights]
    return values, [mean_of_ratios(boot.drawn, own) for own in weights], units
