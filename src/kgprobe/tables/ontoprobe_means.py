"""Means over items with bootstrap intervals, and soft prompts over their seeds."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.intervals import percentile, resamples, standard_error, wilson
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import ontoprobe_values, table
from kgprobe.tables.ontoprobe_values import CONFIGURATION, METRICS

RESAMPLES = 1000
#: shares of items: a bootstrap of none or all of them has no width
SHARES = ("R@1", "R@5")
#: 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def means(
    rows: pl.DataFrame, metrics: Sequence[str], seed: int
) -> Iterator[tuple[str, float, tuple[float, float] | None]]:
    """Mean of every metric (per cent) with its interval over items: Wilson's for SHARES, else a
    bootstrap, and none for fewer than two items.
    """
    if not rows.height:
        return
    values = rows.select(metrics).to_numpy()
    interval: list[tuple[float, float] | None] = [None] * len(metrics)
    if rows.height > 1:
        drawn = _drawn(rows.height, seed) @ values.astype(np.float32) / rows.height
        interval = [percentile(drawn[:, k].astype(float)) for k in range(len(metrics))]
    for k, metric in enumerate(metrics):
        mean, bounds = float(values[:, k].mean()), interval[k]
        if metric in SHARES:
            hits = min(max(values[:, k].sum() / 100, 0.0), float(rows.height))
            low, high = wilson(hits, rows.height)
            bounds = 100 * low, 100 * high
        if bounds:
            bounds = min(bounds[0], mean), max(bounds[1], mean)
        yield metric, mean, bounds


@lru_cache(maxsize=2)
def _drawn(n: int, seed: int) -> NDArray[np.float32]:
    """Bootstrap weights of n items, one matrix for all configurations: paired differences."""
    return resamples(np.zeros(n, dtype=np.int64), RESAMPLES, seed).astype(np.float32)


def student(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of a mean of few values, by Student's t; None for fewer than two.

    >>> [round(bound, 2) for bound in student([1.0, 2.0, 3.0])]
    [-0.48, 4.48]
    """
    if len(values) < 2:
        return None
    freedom = len(values) - 1
    # beyond the table the error of this approximation is below 0.01
    quantile = STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.96 + 2.7 / freedom
    mean, half = sum(values) / len(values), quantile * standard_error(values)
    return mean - half, mean + half


def seeds(answered: Sequence[tuple[str, pl.DataFrame]], tp_rows: str) -> pl.DataFrame | None:
    """TABLE `ontoprobe_seeds`: soft prompts as the mean over seeds, with its interval over seeds.

    `answered`: ("model | benchmark", metrics per item and configuration). Rows are "model |
    benchmark | task | masks pooling loss"; n is the number of seeds; "spread" beside every metric
    is the standard deviation over seeds. None where no soft prompt was trained.
    """
    cells: list[dict[str, object]] = []
    for start, values in answered:
        test = ontoprobe_values.asked_rows(values, tp_rows).filter(template="soft")
        by_seed = test.group_by("task", *CONFIGURATION).agg(ordered_mean(METRICS))
        key = ["task", *(n for n in CONFIGURATION if n != "seed")]
        groups = by_seed.sort(*key, "seed").group_by(key, maintain_order=True)
        for (task, *configuration), group in groups:
            words = ontoprobe_values.spoken((*configuration, ontoprobe_values.MEAN))
            row = f"{start} | {task} | {words.removesuffix(', mean over seeds')}"
            for metric in METRICS:
                own = group[metric].to_list()
                spread = standard_error(own) * sqrt(len(own))
                for column, value, bounds in (
                    (metric, sum(own) / len(own), student(own)),
                    (f"{metric}, spread", spread, None),
                ):
                    cells.append(
                        table.cell(
                            "ontoprobe_seeds",
                            row,
                            column,
                            value,
                            len(own),
                            bounds,
                            paper="ontoprobe",
                        )
                    )
    return table.build(cells) if cells else None
