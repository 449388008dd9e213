"""Calibration and abstention against loops written from their definitions."""

import itertools

import numpy as np
import pytest

from kgprobe.metrics.confidence import (
    BINS,
    abstention_threshold,
    bins_of,
    calibration_interval,
    expected_calibration_error,
)


def error(confidence, hits):
    """Return the calibration error of answers from the difference in each bin."""
    differences = np.bincount(bins_of(confidence), confidence - hits, BINS) / len(hits)
    return expected_calibration_error(differences)


def test_bins_are_half_open_and_the_error_equals_a_loop():
    generator = np.random.default_rng(0)
    confidence = np.concatenate([generator.random(200), [0.0, 0.1, 0.2, 1.0]])
    hits = (generator.random(204) < confidence).astype(float)
    total = 0.0
    for at in range(10):
        low, high = at / 10, (at + 1) / 10
        own = [i for i, c in enumerate(confidence) if low < c <= high or (at == 0 and c == 0)]
        if own:
            sure = sum(confidence[i] for i in own) / len(own)
            right = sum(hits[i] for i in own) / len(own)
            total += len(own) / 204 * abs(sure - right)
    assert error(confidence, hits) == pytest.approx(total)
    assert bins_of(np.array([0.0, 0.1, 0.2, 1.0])).tolist() == [0, 0, 1, 9]


def test_full_confidence_has_error_0_when_right_and_one_half_when_half_right():
    sure = np.ones(4)
    assert error(sure, sure) == 0
    assert error(sure, np.array([1.0, 0.0, 1.0, 0.0])) == 0.5
    for wrong in (2 * sure, -sure):
        with pytest.raises(ValueError, match="not a probability"):
            bins_of(wrong)


def test_the_threshold_is_the_best_of_all():
    generator = np.random.default_rng(1)
    for _ in range(40):
        # few values, so that confidences tie
        confidence = generator.integers(1, 6, 12) / 5
        hits = generator.integers(0, 3, 12) / 2
        found = abstention_threshold(confidence, hits)

        def net(limit, confidence=confidence, hits=hits):
            return sum(2 * h - 1 for c, h in zip(confidence, hits, strict=True) if c >= limit)

        limits = [*sorted(set(confidence.tolist())), np.inf]
        best = max(map(net, limits))
        assert found == min(limit for limit in limits if net(limit) >= best - 1e-9)


def test_all_questions_are_abstained_from_where_no_answer_pays():
    assert abstention_threshold(np.array([0.5, 0.9]), np.zeros(2)) == np.inf
    for values in itertools.permutations([0.2, 0.5, 0.9]):
        assert abstention_threshold(np.array(values), np.ones(3)) == 0.2


def test_the_lower_bound_of_the_error_is_corrected_for_bins_that_may_agree():
    """One bin is far off, one is within two standard errors of zero; both have error 0.02."""
    draws = np.array([[0.28, 0.01], [0.32, 0.01], [0.28, -0.03], [0.32, -0.03]])
    low, high = calibration_interval(np.array([0.3, -0.01]), draws)
    half = 1.959964 * np.sqrt(2) * 0.02
    assert low == pytest.approx(0.31 - np.sqrt(2 / np.pi) * 0.02 - half)
    assert high == pytest.approx(0.31 + half)
    assert calibration_interval(np.array([0.01, 0.0]), draws)[0] == 0.0
