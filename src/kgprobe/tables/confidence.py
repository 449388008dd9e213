"""What the probabilities of options are worth: pairs in order, calibration, abstention.

Of every probe that scores its options, under its own aggregation and under the prior-corrected one.
An answer is one item under one template; intervals come from resampling items within their
relation. The threshold below which nothing is answered is chosen on one half of a relation's
subjects (by hash) and judged on the other.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.aggregations import folds
from kgprobe.metrics.bootstrap import Bootstrap, bootstrap
from kgprobe.metrics.confidence import (
    BINS,
    abstention_threshold,
    calibration_interval,
    expected_calibration_error,
    reliability,
)
from kgprobe.metrics.intervals import Interval, percentile
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.aggregations import EVERY, PROBE, Questions, Readings
from kgprobe.tables.aggregations import WORDS as REDUCED
from kgprobe.tables.answers import PRIOR, PRIOR_IS, Probe
from kgprobe.tables.results import Number
from kgprobe.tables.views import View

#: metrics of one bin of confidence
OF_BINS = ("hits at this confidence", "mean confidence")
WORDS = {
    ("metric", "K"): "K: pairs in order, %",
    ("metric", "ECE"): "calibration error, %",
    ("metric", "abstention threshold"): "answers from a confidence of, %",
    ("metric", "answered"): "answered, %",
    ("metric", "accuracy of answered"): "right of these, %",
    ("metric", "right less wrong"): "right less wrong, %",
    ("choice", "all"): "all answered",
}
VIEW = View(
    "confidence",
    "What the probabilities of options are worth",
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
    caption="Probabilities: softmax over the options' scores. K: pairs of a correct and a wrong "
    "option that are in order. Brier: 0 (certain and right) to 2. Calibration error over ten bins "
    "of confidence: noise adds to it, which its lower bound takes off. The confidence from which "
    "answers are given is chosen on one half of the "
    f"subjects; the columns after it are of the other half. {PRIOR_IS}",
)


def numbers(questions: Questions, answered: Sequence[tuple[Probe, Readings]]) -> Iterator[Number]:
    """K (per cent of an item's pairs of a correct and a wrong option that are in order, ties half),
    Brier (0 to 2), ECE (per cent), OF_BINS (setting `bin`: its lower edge), and of the other half:
    "abstention threshold", answered, "accuracy of answered" (per cent), "right less wrong" with
    and (setting `choice`: all) without abstaining, in per cent of the questions.
    """
    for probe, judged in answered:
        for name in (questions.aggregation, PRIOR):
            answers = judged.get((name, ""), pl.DataFrame())
            if answers.height:
                setting = {"aggregation": name} if name else {}
                of = Number(setting=setting, group=questions.group, **probe.dimensions)
                yield from _pairs(questions, of, answers)
                yield from _calibration(questions, of, answers)
                yield from _abstention(questions, of, answers)


def _pairs(questions: Questions, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """K and the Brier score, means over templates."""
    golds = questions.items.select("item", golds=pl.col("answers").list.len())
    wrong = pl.col("options") - pl.col("golds")
    rows = answers.join(golds, on="item").with_columns(
        K=1 - pl.col("inverted") / pl.col("golds") / wrong
    )
    means = rows.group_by("item", "relation").agg(ordered_mean(["K", "brier"])).sort("item")
    boot = _resample(questions, means.select("K", "brier").to_numpy(), means["relation"])
    of = of.but(n=means.height)
    yield of.but(metric="K", value=100 * boot.mean(0), interval=boot.interval(0).times(100))
    yield of.but(metric="Brier", value=boot.mean(1), interval=_percentiles(boot.draws(1)))


def _calibration(questions: Questions, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """ECE, and the bins that it is made of."""
    rows = answers.sort("item", "template")
    confidence, hits = rows["confidence"].to_numpy(), rows["hit"].to_numpy()
    bins = reliability(confidence, hits)
    # each bin's gaps are a column, and add up in every draw
    place = np.clip(np.ceil(confidence * BINS) - 1, 0, BINS - 1).astype(int)
    gaps = np.zeros((len(rows), BINS))
    gaps[np.arange(len(rows)), place] = confidence - hits
    items, owner = np.unique(rows["item"].to_numpy(), return_inverse=True)
    sums = np.zeros((len(items), BINS + 1))
    np.add.at(sums, owner, np.column_stack([gaps, np.ones(len(rows))]))
    relations = rows.unique("item", keep="first").sort("item")["relation"]
    drawn = _resample(questions, sums, relations).drawn.sum(axis=1)
    bounds = calibration_interval(gaps.sum(axis=0) / len(rows), drawn[:, :BINS] / drawn[:, [BINS]])
    interval = Interval(*bounds, "bootstrap").times(100)
    value = 100 * expected_calibration_error(bins)
    yield of.but(metric="ECE", value=value, interval=interval, n=len(items))
    for one in bins:
        at = place == round(one.low * BINS)
        point = of.but(setting={**of.setting, "bin": one.low}, n=len(np.unique(owner[at])))
        for metric, share in zip(OF_BINS, (one.hits, one.confidence), strict=True):
            yield point.but(metric=metric, value=100 * share)


def _abstention(questions: Questions, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """A threshold chosen on half of the subjects, judged on the others; nothing without both."""
    who = pl.when(pl.col("subject_id") == "").then("subject").otherwise("subject_id")
    rows = answers.join(questions.items.select("item", who=who), on="item").sort("item", "template")
    half = pl.Series(np.zeros(len(rows), dtype=np.int64))
    for (relation,), group in rows.with_row_index("_at").group_by("relation", maintain_order=True):
        fold = folds(group["who"].to_list(), questions.seed, f"{relation} abstention", 2)
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
    names = ["said", "right", "net", "every"]
    means = judged.group_by("item", "relation").agg(ordered_mean(names)).sort("item")
    boot = _resample(questions, means.select(names).to_numpy(), means["relation"])
    of = of.but(n=means.height)
    yield of.but(metric="abstention threshold", value=100 * min(limit, 1.0))
    yield of.but(metric="answered", value=100 * boot.mean(0), interval=boot.interval(0).times(100))
    if boot.mean(0):
        value, interval = boot.ratio(1, 0)
        bounds = interval and interval.times(100)
        answered = int(judged.filter(pl.col("said") > 0)["item"].n_unique())
        yield of.but(metric="accuracy of answered", value=100 * value, interval=bounds, n=answered)
    for column, setting in ((2, {}), (3, {"choice": "all"})):
        net = of.but(metric="right less wrong", setting={**of.setting, **setting})
        yield net.but(
            value=100 * boot.mean(column), interval=_percentiles(100 * boot.draws(column))
        )


def _resample(questions: Questions, values: NDArray[np.float64], relations: pl.Series) -> Bootstrap:
    return bootstrap(values, relations.to_list(), seed=questions.seed, draws=questions.resamples)


def _percentiles(draws: NDArray[np.float64]) -> Interval:
    """Percentiles of a number that is no proportion."""
    return Interval(*percentile(draws), "bootstrap")
