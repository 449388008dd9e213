"""Metrics of items with several golds and tied ranks: R@K, MRR, MRRa (OntoProbe, sec. 3.1.3).

Ties are broken at random and every value is its expectation, so that MRR is never below R@1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgprobe.metrics.ranking import hit_at, reciprocal_rank

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Items:
    """Metric values per item, all in 0 .. 1: `hits` and `recall` by K, reciprocal ranks.

    mrr: of the best gold. mrra: reciprocal of the mean gold rank. filtered: mean over golds, each
    ranked without the others. ceiling: maximum of mrra, 2 / (golds + 1).
    """

    hits: dict[int, Numbers]
    recall: dict[int, Numbers]
    mrr: Numbers
    mrra: Numbers
    filtered: Numbers
    ceiling: Numbers


def values(best: Counts, worst: Counts, starts: Counts, ks: tuple[int, ...] = (1, 5)) -> Items:
    """Compute metrics of items from rank ranges of golds, those of each item from `starts` on."""
    best, worst = np.asarray(best, dtype=np.int64), np.asarray(worst, dtype=np.int64)
    starts = np.asarray(starts, dtype=np.int64)
    golds = np.diff(starts, append=len(best))
    owner = np.repeat(np.arange(len(starts)), golds)
    top = np.minimum.reduceat(best, starts)
    leading = best == top[owner]
    tied = np.bincount(owner[leading], minlength=len(starts))
    last = np.zeros(len(starts), dtype=np.int64)
    last[owner[leading]] = worst[leading]
    mean = np.add.reduceat((best + worst) / 2.0, starts) / golds
    inside = {k: np.clip(k - best + 1, 0, worst - best + 1) / (worst - best + 1) for k in ks}
    return Items(
        {k: hit_at(k, top, last, tied) for k in ks},
        {k: np.add.reduceat(inside[k], starts) / golds for k in ks},
        reciprocal_rank(top, last, golds=tied),
        1.0 / mean,
        np.add.reduceat(_without_others(best, worst, owner), starts) / golds,
        2.0 / (golds + 1),
    )


def at_ranks(ranks: Numbers, starts: Counts, ks: tuple[int, ...] = (1, 5)) -> Items:
    """Compute metrics of items from one rank per gold; tied golds share their mean rank."""
    ranks, starts = np.asarray(ranks, dtype=float), np.asarray(starts, dtype=np.int64)
    golds = np.diff(starts, append=len(ranks))
    owner = np.repeat(np.arange(len(starts)), golds)
    top = np.minimum.reduceat(ranks, starts)
    order = np.lexsort((ranks, owner))
    ordered, of = ranks[order], owner[order]
    fresh = np.r_[True, (of[1:] != of[:-1]) | (ordered[1:] != ordered[:-1])]
    above = np.maximum.accumulate(np.where(fresh, np.arange(len(ordered)), 0)) - starts[of]
    number = np.cumsum(fresh)
    same = np.bincount(number)[number]
    # without the other golds tied with it, the mean rank of the tie is lower by half their number
    alone = np.empty(len(ordered))
    alone[order] = 1.0 / (ordered - above - (same - 1) / 2)
    return Items(
        {k: (top <= k).astype(float) for k in ks},
        {k: np.add.reduceat((ranks <= k).astype(float), starts) / golds for k in ks},
        1.0 / top,
        golds / np.add.reduceat(ranks, starts),
        np.add.reduceat(alone, starts) / golds,
        2.0 / (golds + 1),
    )


def _without_others(best: Counts, worst: Counts, owner: Counts) -> Numbers:
    """Return the expected reciprocal rank of every gold without the other golds of its item."""
    order = np.lexsort((best, owner))
    b, w, o = best[order], worst[order], owner[order]
    fresh = np.r_[True, (o[1:] != o[:-1])]
    group = np.r_[True, fresh[1:] | (b[1:] != b[:-1])]
    start = np.maximum.accumulate(np.where(fresh, np.arange(len(b)), 0))
    head = np.maximum.accumulate(np.where(group, np.arange(len(b)), 0))
    number = np.cumsum(group) - 1
    same = np.bincount(number)[number]
    low = b - (head - start)
    high = low + (w - b) - (same - 1)
    harmonic = np.r_[0.0, np.cumsum(1.0 / np.arange(1, int(high.max()) + 1))]
    out = np.empty(len(b))
    out[order] = (harmonic[high] - harmonic[low - 1]) / (high - low + 1)
    return out
