"""What the probabilities of options are worth: calibration errors, and when to say nothing.

The confidence of an answer is the largest probability among its options, a softmax over their
scores. Where several options tie for it, the answer is right with the chance of the tie.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS = 10


def bins_of(confidence: Floats) -> NDArray[np.int64]:
    """The number of each confidence's bin: (low, high] of equal width, 0 in the first (Guo et al.
    2017, section 2). Raises ValueError for what is no probability.
    """
    if (confidence < 0).any() or (confidence > 1 + 1e-9).any():
        raise ValueError("a confidence is no probability")
    return np.asarray(np.clip(np.ceil(confidence * BINS) - 1, 0, BINS - 1), dtype=np.int64)


def expected_calibration_error(gaps: Floats) -> float:
    """Mean distance of confidence and hits over the bins, weighed by their answers, 0 to 1 (Guo et
    al. 2017, equation 3). `gaps`: per bin, the sum of confidence less hits over the number of all
    answers.
    """
    return float(np.abs(gaps).sum())


def calibration_interval(gaps: Floats, draws: Floats) -> tuple[float, float]:
    """95 % bounds of the expected calibration error over fixed bins.

    `gaps`: as above; `draws` (draws x bins): the same in every resample. A bin's distance cannot be
    negative, so that noise adds up to sqrt(2 / pi) of its standard error where confidence and hits
    agree. Percentiles of resamples have that bias twice and need not even hold the error itself.
    The lower bound takes it off each bin whose gap is within two standard errors of 0, the upper
    one is right without.
    """
    errors, value = draws.std(axis=0), expected_calibration_error(gaps)
    bias = np.sqrt(2 / np.pi) * float(errors[np.abs(gaps) < 2 * errors].sum())
    half = 1.959963984540054 * float((draws * np.sign(gaps)).sum(axis=1).std())
    return max(0.0, value - bias - half), value + half


def abstention_threshold(confidence: Floats, hits: Floats) -> float:
    """The confidence from which answering pays: it makes right less wrong answers the most.

    One of the confidences, or above 1 where no answer pays; of equal ones the smallest, which
    answers most.
    """
    order = np.argsort(-confidence, kind="stable")
    gains = np.concatenate([[0.0], np.cumsum(2 * hits[order] - 1)])
    # equal confidences are answered together or not at all
    ends = np.append(np.flatnonzero(np.diff(confidence[order])) + 1, len(order))
    stops = np.concatenate([[0], ends])
    best = stops[np.flatnonzero(gains[stops] >= gains[stops].max() - 1e-9)[-1]]
    return float(np.inf if best == 0 else confidence[order][best - 1])
