"""Intervals against known values, and their coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgprobe.metrics import intervals


def test_wilson_equals_the_value_of_the_note():
    low, high = intervals.wilson(1156, 7731)
    assert (round(100 * low, 2), round(100 * high, 2)) == (14.18, 15.77)


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_holds_the_share_and_stays_inside(n, share):
    successes = share * n
    low, high = intervals.wilson(successes, n)
    # share * n / n may differ from share
    assert 0 <= low <= successes / n <= high <= 1


def test_bounds_at_zero_and_one_are_exact_despite_rounding():
    for n in range(1, 3000):
        assert intervals.wilson(n, n)[1] == 1
        assert intervals.wilson(0, n)[0] == 0


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (0, 0), (-1, 5), (6, 5)])
def test_wilson_raises_outside_zero_to_one(successes, n):
    with pytest.raises(ValueError, match="wilson needs"):
        intervals.wilson(successes, n)


def test_standard_error_uses_n_minus_one():
    assert intervals.standard_error([1.0, 2.0, 3.0]) == pytest.approx(1 / np.sqrt(3))
    assert intervals.standard_error([5.0]) == 0


def test_resamples_are_reproducible_and_draw_n_minus_one():
    weights = intervals.resamples(3, n=50, seed=7)
    assert (weights.sum(axis=1) == 2).all()
    assert (intervals.resamples(1, n=50) == 1).all()
    assert (weights == intervals.resamples(3, n=50, seed=7)).all()
    assert (weights != intervals.resamples(3, n=50, seed=8)).any()
    plain = intervals.resamples(6)
    assert plain.shape == (2000, 6)
    assert (plain == intervals.resamples(6, 2000, 0)).all()
