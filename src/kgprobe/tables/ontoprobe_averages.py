"""Averages over configurations (OntoProbe, Figures 5 to 7), and the maxima behind its Table 4."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from kgprobe.metrics.sums import ordered_mean

METRICS = ("R@1", "R@5", "MRRa", "MRR")
#: figure -> the column whose values are compared
FIGURES = {"5": "masks", "6": "pooling", "7": "loss"}


def averages(rows: pl.DataFrame, by: str, weighting: str = "rows") -> pl.DataFrame:
    """Mean of METRICS per value of `by`, over rows of configurations (task, model, ..., METRICS).

    `weighting` rows: plain mean of all rows; weighted: tasks and models count equally, whatever
    their number of rows. A missing MRRa is the MRR (one gold). Losses compare soft rows alone.
    """
    rows = rows.with_columns(pl.col("MRRa").fill_null(pl.col("MRR")))
    rows = rows.filter(pl.col(by).fill_null("") != "")
    count = rows.group_by(by).agg(pl.len().alias("rows"))
    if weighting == "weighted":
        rows = rows.group_by(by, "task", "model").agg(ordered_mean(METRICS))
    means = rows.group_by(by).agg(ordered_mean(METRICS))
    return means.join(count, on=by).sort(by)


def bounds(
    rows: pl.DataFrame, by: str, weighting: str = "rows", seed: int = 0, draws: int = 1000
) -> dict[tuple[str, str], tuple[float, float]]:
    """(value of `by`, metric) -> 95 % bootstrap interval of `averages`.

    Resampled are the configurations, under `weighted` the pairs of task and model. Values with
    fewer than two of them have none.
    """
    rows = rows.with_columns(pl.col("MRRa").fill_null(pl.col("MRR")))
    if weighting == "weighted":
        rows = rows.group_by(by, "task", "model").agg(ordered_mean(METRICS))
    found = {}
    for (value,), group in rows.drop_nulls(by).sort(rows.columns).group_by(by, maintain_order=True):
        numbers = group.select(METRICS).to_numpy()
        if len(numbers) < 2:
            continue
        drawn = np.random.Generator(np.random.PCG64(seed)).integers(
            0, len(numbers), (draws, len(numbers))
        )
        means, whole = numbers[drawn].mean(axis=1), numbers.mean(axis=0)
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        for k, metric in enumerate(METRICS):
            found[str(value), metric] = (min(low[k], whole[k]), max(high[k], whole[k]))
    return found


def maxima(rows: pl.DataFrame) -> pl.DataFrame:
    """Task, model, kind (manual, soft), metric, maximum over configurations: the oracle choice."""
    kind = pl.when(pl.col("template").str.starts_with("soft")).then(pl.lit("soft"))
    named = rows.with_columns(kind=kind.otherwise(pl.lit("manual")))
    best = named.group_by("task", "model", "kind").agg(pl.col(METRICS).max())
    return best.unpivot(
        index=["task", "model", "kind"], on=list(METRICS), variable_name="metric"
    ).sort("task", "model", "kind", "metric")


def unshifted(rows: pl.DataFrame) -> pl.DataFrame:
    """The printed C.2 with TP's column of roberta-large moved up by one row, as it was meant.

    Its first row repeats the last one of roberta-base beside it; its own last row is lost.
    """
    shifted = (pl.col("task") == "TP") & (pl.col("model") == "roberta-large")
    own, others = in_order(rows.filter(shifted)), rows.filter(~shifted)
    moved = own.with_columns(pl.col(METRICS).shift(-1)).head(own.height - 1)
    return pl.concat([others, moved])


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """The paper's order: masks m, s; pooling first, max, mean; soft BCE, NLL, m1, m2, m3."""
    return rows.sort(
        "masks", "pooling", ~pl.col("template").str.starts_with("soft"), "loss", "template"
    )


def needs_several(rows: pl.DataFrame) -> list[tuple[str, str, str]]:
    """(task, model, kind) whose four maxima no single configuration attains."""
    kind = pl.when(pl.col("template").str.starts_with("soft")).then(pl.lit("soft"))
    named = rows.with_columns(kind=kind.otherwise(pl.lit("manual")))
    found: list[tuple[str, str, str]] = []
    for key, group in named.group_by("task", "model", "kind"):
        at_most: Sequence[pl.Expr] = [pl.col(m) == pl.col(m).max() for m in METRICS]
        alone = group.filter(pl.all_horizontal(at_most))
        if not alone.height:
            found.append((str(key[0]), str(key[1]), str(key[2])))
    return sorted(found)
