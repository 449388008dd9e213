"""Estimate one number from judged answers: its value, n and 95 % bootstrap interval.

A frame has a row per item, in the order of items, and values of 0 to 1:

    estimate(rows, "hit")                                       mean, in per cent
    estimate(rows, "hit", is_proportion=True)                   mean, with Wilson's interval
    estimate(rows, "hit", subject="subject")                    mean, subjects drawn as wholes
    estimate(rows, "hit", stratum="relation", is_macro=True)    mean of the relations' means
    estimate(rows, "hit", less="other")                         mean of paired differences
    estimate(rows, "right", over="asked")                       ratio of two sums
    estimate(rows, "hit", weight="asked")                       weighted mean, of a subset of rows
"""

from typing import Any

import polars as pl

from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.tables.results import hit_rate


def estimate(
    rows: pl.DataFrame,
    value: str,
    *,
    less: str = "",
    over: str = "",
    weight: str = "",
    stratum: str = "",
    cluster: str = "",
    subject: str = "",
    is_macro: bool = False,
    is_proportion: bool = False,
    seed: int = 0,
    scale: float = 100,
) -> dict[str, Any]:
    """Return value, n and interval of a Number, scaled by `scale`.

    Rows are drawn within their `stratum`, and by whole clusters, which n then counts; those of a
    `subject` are a cluster if any has several rows. `weight`: weight of a row in a mean or
    difference; rows of weight 0 are drawn as well, so that the number of others varies, but not
    counted in n. `is_macro`: strata weigh the same; `is_proportion`: a mean of hits, with Wilson's
    interval unless it is of strata or clusters. Wilson's is also used for a mean if all draws are
    equal, where a difference or ratio has no interval. Raises ValueError for a ratio over 0 and for
    all-zero weights.
    """
    if subject and rows[subject].is_duplicated().any():
        cluster = subject
    is_proportion = is_proportion and not (cluster or is_macro)
    if is_proportion and not weight:
        return hit_rate(rows[value].cast(pl.Float64).to_numpy(), scale)
    strata, clusters = (rows[name].to_list() if name else None for name in (stratum, cluster))
    columns = [pl.col(name) * (pl.col(weight) if weight else 1) for name in (value, less) if name]
    columns += [pl.col(name).alias("below") for name in (over, weight) if name]
    boot = bootstrap(rows.select(columns).to_numpy(), strata, clusters, seed)
    weights = boot.macro() if is_macro else None
    n = rows[cluster].n_unique() if cluster else rows.height
    if weight:
        asked = rows.filter(pl.col(weight) > 0)
        n = asked[cluster].n_unique() if cluster else asked.height
        result, interval = boot.ratio(0, 2, less=1) if less else boot.ratio(0, 1)
        if not less and (is_proportion or not interval):
            interval = Interval(*wilson(min(result, 1.0) * n, n), "wilson")
    elif over:
        result, interval = boot.ratio(0, 1)
    elif less:
        result, interval = boot.difference(0, 1, weights)
    else:
        result, interval = boot.mean(0, weights), boot.interval(0, weights)
    return {"value": scale * result, "n": n, "interval": interval and interval.times(scale)}
