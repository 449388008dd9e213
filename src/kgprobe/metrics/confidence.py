"""Calibration of option probabilities: calibration error and abstention.

The confidence of an answer is the largest probability among its options, a softmax over their
scores. If several options tie for it, the hit is the chance of picking a gold one.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS = 10


def bins_of(confidence: Floats) -> NDArray[np.int64]:
    """Assign each confidence to a bin: (low, high] of equal width, 0 in the first (Guo et al. 2017,
    section 2). Raises ValueError for values outside [0, 1]."""
    if (confidence < 0).any() or (confidence > 1 + 1e-9).any():
        raise ValueError("a confidence is not a probability")
    return np.asarray(np.clip(np.ceil(confidence * BINS) - 1, 0, BINS - 1), dtype=np.int64)


def expected_calibration_error(gaps: Floats) -> float:
    """Expected calibration error: mean distance of confidence and accuracy over bins, weighted by
    size (Guo et al. 2017, equation 3), 0 to 1. `gaps`: per bin, the sum of confidence minus hits
    over the number of all answers."""
    return float(np.abs(gaps).sum())


def calibration_interval(gaps: Floats, draws: Floats) -> tuple[float, float]:
    """Return 95 % bounds of the expected calibration error over fixed bins.

    `gaps`: see `expected_calibration_error`; `draws` (draws x bins): the same in every resample. A
    bin's distance cannot be negative, so noise adds a bias of sqrt(2 / pi) of its standard error
    where confidence and hits agree. Percentiles of resamples have that bias twice and may not even
    contain the error itself. The lower bound subtracts it for each bin whose gap is within two
    standard errors of 0; the upper bound is correct without.
    """
    errors, value = draws.std(axis=0), expected_calibration_error(gaps)
    bias = np.sqrt(2 / np.pi) * float(errors[np.abs(gaps) < 2 * errors].sum())
    half = 1.959963984540054 * float((draws * np.sign(gaps)).sum(axis=1).std())
    return max(0.0, value - bias - half), value + half


def abstention_threshold(confidence: Floats, hits: Floats) -> float:
    """Return the confidence threshold that maximizes the number of right minus wrong answers.

    One of the confidences, or infinity if no answer pays; among equally good ones the smallest,
    which answers most.
    """
    order = np.argsort(-confidence, kind="stable")
    gains = np.concatenate([[0.0], np.cumsum(2 * hits[order] - 1)])
    # equal confidences are answered together or not at all
    ends = np.append(np.flatnonzero(np.diff(confidence[order])) + 1, len(order))
    stops = np.concatenate([[0], ends])
    best = stops[np.flatnonzero(gains[stops] >= gains[stops].max() - 1e-9)[-1]]
    return float(np.inf if best == 0 else confidence[order][best - 1])
