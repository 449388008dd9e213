"""Ranking metrics with ties as ranges of ranks. Larger scores are better."""

import numpy as np
from numpy.typing import NDArray


def hit_at(
    k: int,
    best: NDArray[np.int64],
    worst: NDArray[np.int64],
    golds: NDArray[np.int64] | int = 1,
) -> NDArray[np.float64]:
    """Expected proportion of hits at `k` under random tie breaking, per item; `golds`: number of
    golds among the tied candidates, of which one is enough.

    >>> hit_at(1, np.array([1]), np.array([4]), np.array([3])).tolist()
    [0.75]
    """
    size = worst - best + 1
    inside = np.clip(k - best + 1, 0, size)
    missed = np.ones(len(size))
    for i in range(int(inside.max(initial=0))):
        left = np.maximum(size - golds - i, 0) / np.maximum(size - i, 1)
        missed *= np.where(i < inside, left, 1.0)
    return np.where(np.asarray(golds) == 1, inside / size, 1.0 - missed)


def reciprocal_rank(
    best: NDArray[np.int64],
    worst: NDArray[np.int64],
    cut: int | None = None,
    golds: NDArray[np.int64] | int = 1,
) -> NDArray[np.float64]:
    """Expected reciprocal rank of the first gold under random tie breaking, per item; 0 beyond rank
    `cut`; `golds`: number of golds among the tied candidates.

    >>> reciprocal_rank(np.array([1]), np.array([3]), golds=np.array([2])).round(3).tolist()
    [0.833]
    """
    golds, size = np.broadcast_to(golds, best.shape), worst - best + 1
    parts = 1.0 / np.arange(1, int(worst.max(initial=0)) + 1)
    if cut is not None:
        parts[cut:] = 0.0
    harmonic = np.concatenate([[0.0], np.cumsum(parts)])
    expected = (harmonic[worst] - harmonic[best - 1]) / size
    several = np.flatnonzero(golds > 1)
    size, golds, place = size[several], golds[several], best[several] - 1
    total, first = np.zeros(len(several)), golds / size  # chance that the first is at a position
    for i in range(int((size - golds).max(initial=-1)) + 1):
        total += first * parts[np.minimum(place + i, len(parts) - 1)]
        first = first * (size - golds - i) / np.maximum(size - 1 - i, 1)
    expected[several] = total
    return np.asarray(expected, dtype=float)


def auc(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> float:
    """Probability that a positive scores above a negative, ties counting half (Mann-Whitney)."""
    if not len(positive) or not len(negative):
        raise ValueError(f"auc needs both classes, got {len(positive)} and {len(negative)}")
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    upto = np.searchsorted(ordered, positive, side="right")
    return float((below + upto).sum() / (2.0 * len(positive) * len(negative)))
