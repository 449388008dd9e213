"""Quality of the option probabilities: pairwise AUC, calibration, abstention.

Computed for every probe that scores its options, under its own and the prior-corrected aggregation.
An answer is one item under one template; intervals come from resampling subjects within their
relation. The threshold for abstaining is chosen on one half of a relation's subjects (by hash) and
evaluated on the other.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from kgprobe.metrics.aggregations import folds
from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.confidence import (
    BINS,
    abstention_threshold,
    bins_of,
    calibration_interval,
    expected_calibration_error,
)
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.aggregations import EVERY, PROBE, Readings
from kgprobe.tables.aggregations import WORDS as REDUCED
from kgprobe.tables.answers import PRIOR, PRIOR_IS, SUBJECT, Probe
from kgprobe.tables.results import Number
from kgprobe.tables.study import Study, by_item
from kgprobe.tables.views import View

#: metrics of one bin of confidence
OF_BINS = ("hits at this confidence", "mean confidence")
WORDS = {
    ("metric", "K"): "pairwise AUC (K of Inside-Out), %",
    ("metric", "ECE"): "calibration error, %",
    ("metric", "abstention threshold"): "confidence threshold, %",
    ("metric", "answered"): "answered, %",
    ("metric", "accuracy of answered"): "right of these, %",
    ("metric", "right less wrong"): "right less wrong, %",
    ("choice", "all"): "all answered",
}
VIEW = View(
    "confidence",
    "Calibration of the option probabilities",
    where={
        **EVERY,
        "metric": [
            "K",
            "Brier",
            "ECE",
            "abstention threshold",
            "answered",
            "accuracy of answered",
            "right less wrong",
        ],
        "slice": [""],
        "choice": ["", "all"],
    },
    rows=["benchmark", *PROBE, "aggregation"],
    columns=["metric", "choice"],
    words={**REDUCED, **WORDS},
    digits={"Brier": 3},
    caption="Probabilities: softmax over the scores of the options. Pairwise AUC: proportion of "
    "pairs of a correct and a wrong option in the right order, ties count half. Brier: 0 (certain "
    "and right) to 2. Calibration error over ten bins of confidence: noise increases it, for which "
    "its lower bound corrects. The confidence threshold for giving an answer is chosen on one half "
    f"of the subjects; the columns after it refer to the other half. {PRIOR_IS}",
)


def estimates(study: Study, probe: Probe, judged: Readings) -> Iterator[Number]:
    """Yield K (per cent of an item's pairs of a correct and a wrong option in order, ties half),
    Brier (0 to 2), ECE (per cent), OF_BINS (setting `bin`: its lower edge), and for the other half:
    "abstention threshold", answered, "accuracy of answered" (per cent), "right less wrong" with and
    (setting `choice`: all) without abstaining, in per cent of that half."""
    for name in (study.aggregation, PRIOR):
        answers = judged.get((name, ""), pl.DataFrame())
        if answers.height:
            setting = {"aggregation": name} if name else {}
            of = Number(setting=setting, group=study.group, **probe.dimensions)
            yield from _pairs(study, of, answers)
            yield from _calibration(study, of, answers)
            yield from _abstention(study, of, answers)


def _pairs(study: Study, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """Yield K and the Brier score, means over templates."""
    golds = study.items.select("item", golds=pl.col("answers").list.len())
    wrong = pl.col("options") - pl.col("golds")
    in_order = 1 - pl.col("inverted") / pl.col("golds") / wrong
    rows = answers.join(golds, on="item").with_columns(K=in_order)
    means = by_item(rows, "K", "brier")
    yield of.but(metric="K", **study.estimate(means, "K"))
    yield of.but(metric="Brier", **_between(study, means, "brier", 0, 1))


def _calibration(study: Study, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """Yield ECE, and the bins that it is computed from."""
    rows = answers.sort("item", "template")
    rows = rows.join(study.clusters, on="item", how="left", maintain_order="left")
    bins = bins_of(rows["confidence"].to_numpy())
    # each bin's gaps are a column, so that they add up in every draw
    gaps = np.zeros((len(rows), BINS))
    gaps[np.arange(len(rows)), bins] = (rows["confidence"] - rows["hit"]).to_numpy()
    boot = bootstrap(gaps, rows["relation"].to_list(), rows["cluster"].to_list(), study.seed)
    drawn, mean = boot.drawn.sum(axis=1), gaps.mean(axis=0)
    n, value = rows["cluster"].n_unique(), expected_calibration_error(mean)
    bounds = calibration_interval(mean, drawn[:, :BINS] / drawn[:, [BINS]])
    is_alike = bounds[1] - bounds[0] < 1e-9
    interval = _alike(value, 0, 1, n) if is_alike else Interval(*bounds, "bootstrap")
    yield of.but(metric="ECE", value=100 * value, interval=interval.times(100), n=n)
    binned = rows.group_by(bin=pl.Series(bins / BINS)).agg(
        ordered_mean(["hit", "confidence"]), n=pl.col("cluster").n_unique()
    )
    for low, *means, n in binned.sort("bin").rows():
        for metric, share in zip(OF_BINS, means, strict=True):
            yield of.but(metric=metric, value=100 * share, n=n, setting={"bin": low})


def _abstention(study: Study, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """Yield results of a threshold chosen on half of the subjects for the others, if both exist."""
    rows = answers.join(study.items.select("item", who=SUBJECT), on="item").sort("item", "template")
    half = pl.Series(np.zeros(len(rows), dtype=np.int64))
    for (relation,), group in rows.with_row_index("_at").group_by("relation", maintain_order=True):
        fold = folds(group["who"].to_list(), study.seed, f"{relation} abstention", 2)
        half[group["_at"]] = pl.Series(fold)
    chosen, judged = (rows.filter(half == part) for part in (0, 1))
    if not chosen.height or not judged.height:
        return
    limit = abstention_threshold(chosen["confidence"].to_numpy(), chosen["hit"].to_numpy())
    said = judged["confidence"] >= limit
    judged = judged.with_columns(
        said=said.cast(pl.Float64),
        right=pl.col("hit") * said,
        net=(2 * pl.col("hit") - 1) * said,
        every=2 * pl.col("hit") - 1,
    )
    means = by_item(judged, "said", "right", "net", "every")
    n, answered = study.count(means["item"]), means.filter(pl.col("said") > 0)
    # infinite where no answer pays
    value = 100 * limit if np.isfinite(limit) else None
    yield of.but(metric="abstention threshold", value=value, n=n)
    yield of.but(metric="answered", **study.estimate(means, "said"))
    if answered.height:
        share = study.estimate(means, "right", over="said")
        n = study.count(answered["item"])
        yield of.but(metric="accuracy of answered", **{**share, "n": n})
    for column, setting in (("net", {}), ("every", {"choice": "all"})):
        net = of.but(metric="right less wrong", setting={**of.setting, **setting})
        yield net.but(**_between(study, means, column, -1, 100))


def _between(
    study: Study, rows: pl.DataFrame, value: str, low: int, scale: float
) -> dict[str, Any]:
    """Estimate the mean of a value from `low` to `low` + 2."""
    result = study.estimate(rows.with_columns(one=1.0), value, over="one", scale=scale)
    alike = _alike(result["value"] / scale, low, low + 2, result["n"]).times(scale)
    return {**result, "interval": result["interval"] or alike}


def _alike(value: float, low: float, high: float, n: int) -> Interval:
    """Return the bounds of a mean if all draws are equal: the proportion of others that Wilson's
    bound allows when none of `n` differs may have any value from `low` to `high`."""
    others = wilson(0, n)[1]
    return Interval(value - others * (value - low), value + others * (high - value), "wilson")
