"""One function for means, paired differences and ratios, and how each uses the bootstrap."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t

from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.intervals import wilson
from kgprobe.tables.estimate import estimate

ROWS = pl.DataFrame({
    "hit": [1.0, 0.0, 1.0, 1.0, 0.5, 0.0, 1.0], "other": [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.5],
    "asked": 2.0, "of": ["a", "a", "a", "a", "b", "b", "b"],
})  # fmt: skip
BOTH = ROWS.select("hit", "other").to_numpy()


def test_stratified_means_over_rows_or_strata():
    boot = bootstrap(BOTH, ROWS["of"].to_list(), seed=3)
    plain = estimate(ROWS, "hit", stratum="of", seed=3)
    assert (plain["value"], plain["n"]) == (pytest.approx(100 * 4.5 / 7), 7)
    assert plain["interval"] == boot.interval().times(100)
    macro = estimate(ROWS, "hit", stratum="of", is_macro=True, seed=3)
    assert macro["value"] == pytest.approx(100 * (3 / 4 + 1.5 / 3) / 2)
    assert macro["interval"] == boot.interval(0, boot.macro()).times(100)
    share = estimate(ROWS, "hit", is_proportion=True, scale=1)
    assert (share["value"], share["interval"]) == (4.5 / 7, (*wilson(4.5, 7), "wilson"))


def test_differences_are_paired_and_ratios_are_of_sums():
    difference = estimate(ROWS, "hit", less="other")
    assert difference["value"] == pytest.approx(100 * 2 / 7)
    assert difference["interval"] == bootstrap(BOTH).difference(0, 1)[1].times(100)
    assert estimate(ROWS.with_columns(same="hit"), "hit", less="same")["interval"] is None
    ratio = estimate(ROWS, "hit", over="asked")
    assert (ratio["value"], ratio["n"]) == (pytest.approx(100 * 4.5 / 14), 7)
    assert ratio["interval"] == bootstrap(ROWS["hit"].to_numpy()).interval().times(50)
    with pytest.raises(ValueError, match="a ratio over a sum of 0"):
        estimate(ROWS.with_columns(asked=0.0), "hit", over="asked")


def test_zero_weight_rows_are_drawn_but_not_counted():
    rows = ROWS.with_columns(weight=pl.Series([1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0]))
    result = estimate(rows, "hit", weight="weight", stratum="of", seed=3)
    assert (result["value"], result["n"]) == (pytest.approx(100 * 1.5 / 2.5), 3)
    weights = rows["weight"].to_numpy()
    boot = bootstrap(BOTH * weights[:, None], rows["of"].to_list(), seed=3)
    below = bootstrap(weights, rows["of"].to_list(), seed=3).drawn[:, :, 0].sum(axis=1)
    drawn = boot.drawn[:, :, :2].sum(axis=1)[below > 0] / below[below > 0, None]
    # three rows have weight
    tails = norm.cdf(-t.ppf(0.975, 2)) * np.array([1, -1]) + [0, 1]
    assert result["interval"][:2] == pytest.approx(100 * np.quantile(drawn[:, 0], tails))
    difference = estimate(rows, "hit", less="other", weight="weight", stratum="of", seed=3)
    assert (difference["value"], difference["n"]) == (pytest.approx(100 * (1.5 - 1) / 2.5), 3)
    bounds = np.quantile(drawn[:, 0] - drawn[:, 1], tails)
    assert difference["interval"][:2] == pytest.approx(100 * bounds)
    # all weighted rows are hits: draws do not vary
    right = ROWS.filter(pl.col("hit") == 1).with_columns(weight=0.5)
    bounds = tuple(100 * bound for bound in wilson(4, 4))
    assert estimate(right, "hit", weight="weight")["interval"] == (*bounds, "wilson")
    # a sum of expected hits that exceeds 1 by a rounding error
    right = right.with_columns(hit=1 + 2.0**-52)
    assert estimate(right, "hit", weight="weight")["interval"] == (*bounds, "wilson")


def test_clusters_are_resampled_whole_and_counted():
    whole = estimate(ROWS, "hit", over="asked", cluster="of")
    assert (whole["n"], whole["interval"].kind) == (2, "cluster bootstrap")
    # both clusters, or one of the two twice
    assert sorted(whole["interval"][:2]) == pytest.approx([25.0, 37.5])


def test_subjects_are_clusters_only_if_one_has_several_rows():
    alone = ROWS.with_row_index("subject")
    proportion = estimate(alone, "hit", subject="subject", is_proportion=True)
    assert proportion == estimate(ROWS, "hit", is_proportion=True)
    several = estimate(ROWS, "hit", subject="of", is_proportion=True)
    assert several == estimate(ROWS, "hit", cluster="of")
    macro = estimate(ROWS, "hit", stratum="of", is_macro=True, is_proportion=True)
    assert macro["interval"].kind == "bootstrap"
