"""Tests of paired differences, corrected for multiple comparisons."""

from collections import Counter
from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

#: type I error, and power: the proportion of true differences of the least size that are found
LEVEL, POWER = 0.05, 0.8
#: most differing pairs with an exact p; largest n of the unit, 1/n of the smallest difference, that
#: all are counted in (three templates, up to seven tied options); largest sum of all in such units
LARGE, FINEST, LONGEST = 1000, 1260, 36_000


def exchange_error(gaps: NDArray[np.float64]) -> float:
    """Standard error of the mean of paired differences under random signs, if neither side is
    better (McNemar 1947, with means over several answers in place of single ones).

    It is 0 only if no pair differs; the spread of the differences is also 0 if all differ alike.

    >>> exchange_error(np.array([1.0, 1.0, 0.0, 0.0]))
    0.3535533905932738
    """
    return float(np.sqrt((gaps**2).sum())) / len(gaps)


def exchange_p(gaps: NDArray[np.float64]) -> float:
    """Two-sided p of paired differences (-1 to 1) if neither side is better (`exchange_error`).

    Exact, with sign patterns whose mean is equally far from 0 counting half: McNemar's mid-p if
    every difference is -1, 0 or 1 (Fagerland, Lydersen and Laake 2013, BMC Medical Research
    Methodology 13:91). Normal approximation beyond LARGE differing pairs, and for differences that
    are not all multiples of 1/n of the smallest, for an n up to FINEST that keeps their sum within
    LONGEST steps.

    >>> exchange_p(np.array([1.0, 1.0, 1.0, 0.0]))
    0.125
    """
    # means of the same hits may differ in their last bits
    steps = gaps[np.abs(gaps) > 1e-9]
    if not len(steps):
        return 1.0
    # p does not depend on the unit, and sums over subjects come in odd ones
    steps = steps / np.abs(steps).min()
    sizes = np.unique(np.abs(steps))
    parts = np.arange(1, min(FINEST, int(LONGEST / np.abs(steps).sum())) + 1)
    scaled = sizes[:, None] * parts if len(steps) <= LARGE else np.empty((1, 0))
    parts = parts[(np.abs(scaled - np.rint(scaled)) < 1e-9).all(axis=0)]
    if not len(parts):
        return two_sided(gaps.mean(), exchange_error(gaps))
    steps = np.rint(steps * parts[0]).astype(int)
    chances = np.ones(1)
    for size, count in sorted(Counter(np.abs(steps).tolist()).items()):
        above = np.zeros(size * count + 1)
        above[::size] = [comb(count, k) / 2**count for k in range(count + 1)]
        chances = np.convolve(chances, above)
    far = np.abs(2 * np.arange(len(chances)) - len(chances) + 1)
    found = abs(steps.sum())
    return float(chances[far > found].sum() + chances[far == found].sum() / 2)


def two_sided(difference: float, error: float) -> float:
    """p of a difference with this standard error under the normal distribution; 1 if both are 0.

    >>> round(two_sided(1.96, 1.0), 3)
    0.05
    """
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * ndtr(-abs(difference) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple comparisons (Holm 1979), in the given order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected


def detectable(error: float) -> float:
    """Return the least true difference that a two-sided test at LEVEL finds with POWER."""
    return float((ndtri(1 - LEVEL / 2) + ndtri(POWER)) * error)
