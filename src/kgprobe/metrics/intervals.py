"""Intervals for proportions and means: Wilson, percentile bootstrap, standard error."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit


class Interval(NamedTuple):
    """95 % bounds and the kind of interval (wilson, bootstrap, paired bootstrap ...)."""

    low: float
    high: float
    kind: str

    def times(self, factor: float) -> "Interval":
        """Scale the bounds to another unit (100: per cent)."""
        return Interval(self.low * factor, self.high * factor, self.kind)

    def minus(self, value: float) -> "Interval":
        """Subtract a fixed number from the bounds."""
        return Interval(self.low - value, self.high - value, self.kind)


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % score interval of a proportion; both may be fractional (expected under ties).

    Source: Wilson 1927. Raises ValueError unless 0 <= successes <= n and n > 0.

    >>> [round(100 * bound, 2) for bound in wilson(1156, 7731)]
    [14.18, 15.77]
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"wilson needs 0 <= successes <= n and n > 0, got {successes} of {n}")
    z = NormalDist().inv_cdf(0.975)
    proportion = successes / n
    center = proportion + z * z / (2 * n)
    half = z * np.sqrt(proportion * (1 - proportion) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low, high = (center - half) / scale, (center + half) / scale
    # At 0 and 1 the bound equals the proportion; rounding must not put it on the other side.
    return float(min(max(low, 0.0), proportion)), float(max(min(high, 1.0), proportion))


def of_hits(hits: NDArray[np.float64]) -> Interval:
    """Wilson's interval of the mean of hits, each in 0..1 (fractional: expected under ties)."""
    # the sum of expected hits may exceed n by a rounding error
    return Interval(*wilson(min(max(float(hits.sum()), 0.0), len(hits)), len(hits)), "wilson")


def student(values: Sequence[float]) -> Interval | None:
    """Interval of a mean of few values (seeds), by Student's t; None for fewer than two.

    >>> [round(bound, 2) for bound in student([1.0, 2.0, 3.0])[:2]]
    [-0.48, 4.48]
    """
    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, 0.975)) * standard_error(values)
    mean = sum(values) / len(values)
    return Interval(mean - half, mean + half, "student")


def standard_error(values: Sequence[float]) -> float:
    """Return the standard deviation with divisor n - 1, over sqrt(n); 0 for a single value."""
    if not len(values):
        raise ValueError("standard_error needs at least one value")
    if len(values) == 1:
        return 0.0
    return float(np.std(np.asarray(values, dtype=float), ddof=1) / np.sqrt(len(values)))


def fisher(r: float, n: int, is_of_ranks: bool = False) -> Interval:
    """Interval of a correlation over `n` > 3 pairs by Fisher's transform; for rank correlations
    with the error of Bonett and Wright (2000, Psychometrika 65:23-28).

    >>> [round(bound, 2) for bound in fisher(0.5, 28)[:2]]
    [0.16, 0.74]
    """
    # the transform is infinite at 1
    center = np.arctanh(min(max(r, -1 + 1e-12), 1 - 1e-12))
    half = ndtri(0.975) * np.sqrt((1 + is_of_ranks * r * r / 2) / (n - 3))
    low, high = np.tanh([center - half, center + half]).tolist()
    return Interval(min(low, r), max(high, r), "fisher")


def resamples(size: int, n: int = 2000, seed: int = 0) -> NDArray[np.int32]:
    """Return bootstrap weights (n x size): how often each item occurs in a draw of size - 1; a
    single item is in every draw.

    One matrix for several models or templates makes their differences paired. The same seed gives
    the same matrix on every machine.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = generator.integers(0, size, size=(n, max(1, size - 1)))
    drawn += size * np.arange(n)[:, None]  # each draw is counted in its own row
    return np.bincount(drawn.ravel(), minlength=n * size).reshape(n, size).astype(np.int32)


def percentile(
    samples: NDArray[np.float64], degrees_of_freedom: float = np.inf
) -> tuple[float, float]:
    """Return the central 95 % of bootstrap replicates, widened by the ratio of Student's t with
    these degrees of freedom to the normal distribution."""
    tail = ndtr(-stdtrit(degrees_of_freedom, 0.975))
    low, high = np.quantile(samples, [tail, 1 - tail])
    return float(low), float(high)
