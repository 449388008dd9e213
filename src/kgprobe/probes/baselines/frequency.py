"""The frequency baseline of OntoProbe: golds of the training rows by count (sec. 3.1.3).

The counted golds come first, ties by first appearance; all other candidates follow in random
order. Hits use only the counted golds; reciprocal ranks are means over seeded orders.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: number of random orders of the uncounted candidates
TAILS = 100


@dataclass(frozen=True)
class Ranked:
    """Per item: hits by K (or proportions of the golds), and reciprocal ranks (tails x items) of
    the best gold and of the mean gold rank."""

    hits: dict[int, NDArray[np.float64]]
    mrr: NDArray[np.float64]
    mrra: NDArray[np.float64]
    counted: int


def at_random(golds: Sequence[int], candidates: int, recall: str = "hit") -> dict[str, float]:
    """Return expected R@1, R@5 and MRR (best gold), 0 to 1, of randomly ordered candidates.

    Means over items with the given numbers of golds; with `recall` share, R@K is the proportion of
    an item's golds. No gold is among the first r of N candidates with P = C(N - g, r) / C(N, r).

    >>> at_random([1], 2)["MRR"]
    0.75
    """
    count = np.asarray(golds)[:, None]
    left = candidates - np.arange(candidates)
    # probability that no gold is among the first 1, 2 ... positions
    without = np.cumprod(np.maximum(left - count, 0) / left, axis=1)
    first = -np.diff(without, axis=1, prepend=1.0)
    among = {k: min(k, candidates) for k in (1, 5)}
    hits = {k: float((1 - without[:, n - 1]).mean()) for k, n in among.items()}
    if recall == "share":
        hits = {k: n / candidates for k, n in among.items()}
    return {
        **{f"R@{k}": value for k, value in hits.items()},
        "MRR": float((first / np.arange(1, candidates + 1)).sum(axis=1).mean()),
    }


def rank(
    train: Sequence[Sequence[int]],
    test: Sequence[Sequence[int]],
    candidates: int,
    seed: int = 0,
    tails: int = TAILS,
    recall: str = "hit",
) -> Ranked:
    """Rank the golds of `test` by the counts of the golds of `train` (indices of the set).

    `recall` is as in `at_random`. Raises ValueError without training rows.
    """
    if not train:
        raise ValueError("the frequency baseline counts golds of training rows; there are none")
    counts = Counter(gold for golds in train for gold in golds)
    head = [gold for gold, _ in counts.most_common()]  # stable: ties by first appearance
    rest = np.array([c for c in range(candidates) if c not in counts], dtype=np.int64)
    flat = np.array([gold for golds in test for gold in golds], dtype=np.int64)
    sizes = np.array([len(golds) for golds in test])
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    generator = np.random.Generator(np.random.PCG64(seed))
    ranks = np.empty(candidates, dtype=np.float64)
    ranks[head] = np.arange(1, len(head) + 1)
    first, mean = np.empty((tails, len(test))), np.empty((tails, len(test)))
    for tail in range(tails):
        ranks[generator.permutation(rest)] = np.arange(len(head) + 1, candidates + 1)
        gold_ranks = ranks[flat]
        first[tail] = 1.0 / np.minimum.reduceat(gold_ranks, starts)
        mean[tail] = sizes / np.add.reduceat(gold_ranks, starts)
    known = np.where(np.isin(flat, head), ranks[flat], np.inf)
    inside = {k: np.add.reduceat((known <= k).astype(float), starts) for k in (1, 5)}
    hits = {k: n / sizes if recall == "share" else np.minimum(n, 1.0) for k, n in inside.items()}
    return Ranked(hits, first, mean, len(head))
