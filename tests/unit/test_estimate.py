"""One function for means, paired differences and ratios, beside loops over the same draws."""

import numpy as np
import polars as pl
import pytest

from kgprobe.metrics.intervals import wilson
from kgprobe.sampling import hash_key
from kgprobe.tables.estimate import estimate

HITS, OTHER = [1.0, 0.0, 1.0, 1.0, 0.5, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.5]
NAMES = ["a", "a", "a", "a", "b", "b", "b"]
ROWS = pl.DataFrame({"hit": HITS, "other": OTHER, "asked": 2.0, "of": NAMES})


def draws(seed, *columns, names=NAMES):
    """Means of every column by stratum: draws x strata, drawn one after another."""
    drawn = []
    for name in sorted(set(names)):
        rng = np.random.Generator(np.random.PCG64(hash_key(seed, "bootstrap", name)))
        own = np.array(columns).T[np.array(names) == name]
        drawn.append([own[rng.integers(0, len(own), len(own))].mean(axis=0) for _ in range(2000)])
    return np.array(drawn).transpose(1, 0, 2)


def bounds(values):
    return pytest.approx(tuple(100 * np.quantile(values, [0.025, 0.975])))


def test_a_mean_within_strata_of_rows_or_of_strata():
    sizes, drawn = np.array([4, 3]), draws(3, HITS)[..., 0]
    plain = estimate(ROWS, "hit", stratum="of", seed=3)
    assert (plain["value"], plain["n"]) == (pytest.approx(100 * 4.5 / 7), 7)
    assert plain["interval"][:2] == bounds(drawn @ sizes / 7)
    macro = estimate(ROWS, "hit", stratum="of", is_macro=True, seed=3)
    assert macro["value"] == pytest.approx(100 * (3 / 4 + 1.5 / 3) / 2)
    assert macro["interval"][:2] == bounds(drawn.mean(axis=1))
    assert macro["interval"].kind == "bootstrap"
    share = estimate(ROWS, "hit", is_share=True, scale=1)
    assert (share["value"], share["interval"]) == (4.5 / 7, (*wilson(4.5, 7), "wilson"))


def test_a_difference_is_paired_and_a_ratio_is_one_of_sums():
    drawn = draws(0, HITS, OTHER, names=[""] * 7)[:, 0]
    gap = estimate(ROWS, "hit", less="other")
    assert gap["value"] == pytest.approx(100 * 2 / 7)
    assert gap["interval"][:2] == bounds(drawn[:, 0] - drawn[:, 1])
    assert gap["interval"].kind == "paired bootstrap"
    assert estimate(ROWS.with_columns(same="hit"), "hit", less="same")["interval"] is None
    ratio = estimate(ROWS, "hit", over="asked")
    assert (ratio["value"], ratio["n"]) == (pytest.approx(100 * 4.5 / 14), 7)
    assert ratio["interval"][:2] == bounds(drawn[:, 0] / 2)
    with pytest.raises(ValueError, match="a ratio over a sum of 0"):
        estimate(ROWS.with_columns(asked=0.0), "hit", over="asked")


def test_clusters_are_drawn_whole_and_counted():
    whole = estimate(ROWS, "hit", over="asked", cluster="of")
    assert (whole["n"], whole["interval"].kind) == (2, "cluster bootstrap")
    # both, or one of the two twice
    assert sorted(whole["interval"][:2]) == pytest.approx([25.0, 37.5])
