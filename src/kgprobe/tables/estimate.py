"""One number over judged answers: its value, n and 95 % interval, with the one bootstrap behind.

A frame has a row per item, in the order of items, and values of 0 to 1:

    estimate(rows, "hit")                                       mean, in per cent
    estimate(rows, "hit", stratum="relation", is_macro=True)    mean of the relations' means
    estimate(rows, "hit", less="other")                         mean of paired differences
    estimate(rows, "right", over="asked")                       ratio of two sums
"""

from typing import Any

import polars as pl

from kgprobe.metrics.bootstrap import bootstrap


def estimate(
    rows: pl.DataFrame,
    value: str,
    *,
    less: str = "",
    over: str = "",
    stratum: str = "",
    cluster: str = "",
    is_macro: bool = False,
    is_proportion: bool = False,
    seed: int = 0,
    scale: float = 100,
) -> dict[str, Any]:
    """Value, n and interval of a Number, `scale` times what the columns hold.

    Rows are drawn within their `stratum`, or by whole clusters, which n then counts. `is_macro`:
    strata weigh the same; `is_proportion`: a mean of hits, whose interval is Wilson's. A difference
    and a ratio have no interval where no draw differs. Raises ValueError for a ratio over 0.
    """
    columns = [name for name in (value, less, over) if name]
    strata, clusters = (rows[name].to_list() if name else None for name in (stratum, cluster))
    boot = bootstrap(rows.select(columns).to_numpy(), strata, clusters, seed)
    weights = boot.macro() if is_macro else None
    if over:
        result, interval = boot.ratio(0, 1)
    elif less:
        result, interval = boot.difference(0, 1, weights)
    else:
        result, interval = boot.mean(0, weights), boot.interval(0, weights, is_proportion)
    n = rows[cluster].n_unique() if cluster else rows.height
    return {"value": scale * result, "n": n, "interval": interval and interval.times(scale)}
