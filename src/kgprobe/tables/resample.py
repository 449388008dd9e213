"""Paired bootstrap over the items of a benchmark, by sums per relation.

Items are resampled within their relation. One relation's draws depend on the seed and the
relation's name alone, so they are the same for every model and template (differences are paired)
and do not change when another relation is added.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgprobe.metrics.intervals import has_width, of_share, percentile, resamples
from kgprobe.sampling import hash_key

Interval = tuple[float, float]


@dataclass(frozen=True)
class Resampled:
    """Sums of item values per relation: observed, and in every bootstrap replicate."""

    relations: list[str]
    sizes: NDArray[np.float64]  #: items, per relation
    sums: NDArray[np.float64]  #: relations x columns
    replicates: NDArray[np.float64]  #: replicates x relations x columns
    seed: int

    def mean(self, column: int, weights: NDArray[np.float64] | None = None) -> float:
        """Weighted mean over items; `weights` per relation (default: all items weigh the same)."""
        w = self._weights(weights)
        return float((w * self.sums[:, column]).sum() / (w * self.sizes).sum())

    def interval(self, column: int, weights: NDArray[np.float64] | None = None) -> Interval:
        """95 % percentile interval of `mean`."""
        return percentile(self._replicates(column, weights))

    def difference(
        self, column: int, other: int, weights: NDArray[np.float64] | None = None
    ) -> tuple[float, Interval | None]:
        """Mean of `column` minus mean of `other`, and the interval of the paired difference.

        None where the difference is the same in every resample: nothing fits such a quantity.
        """
        gap = self._replicates(column, weights) - self._replicates(other, weights)
        found = percentile(gap)
        value = self.mean(column, weights) - self.mean(other, weights)
        return value, found if has_width(found) else None

    def over_relations(self, column: int) -> Interval:
        """Interval of the relation-macro mean when relations, not items, are resampled.

        Wilson's over relations where that has no width; values lie in [0, 1].
        """
        means = self.sums[:, column] / self.sizes
        strata = np.zeros(len(means), dtype=np.int64)
        weights = resamples(strata, len(self.replicates), hash_key(self.seed, "relations"))
        found = percentile((weights * means).sum(axis=1) / len(means))
        return of_share(found, float(means.sum()), len(means))[0]

    def macro(self) -> NDArray[np.float64]:
        """Weights under which every relation counts the same."""
        return np.asarray(1.0 / self.sizes)

    def _weights(self, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
        return np.ones(len(self.sizes)) if weights is None else weights

    def _replicates(self, column: int, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
        w = self._weights(weights)
        return np.asarray((self.replicates[:, :, column] * w).sum(axis=1) / (w * self.sizes).sum())


def by_relation(
    values: NDArray[np.float64], relations: Sequence[str], n: int = 2000, seed: int = 0
) -> Resampled:
    """Resample `values` (items x columns), whose items belong to `relations` (one name an item).

    Items must come in an order that is the same in every call (sorted by item). Raises ValueError
    when lengths differ.
    """
    if len(values) != len(relations):
        raise ValueError(f"{len(values)} rows of values for {len(relations)} items")
    owner = np.asarray(relations)
    names = sorted(set(relations))
    replicates = np.empty((n, len(names), values.shape[1]))
    sums = np.empty((len(names), values.shape[1]))
    sizes = np.empty(len(names))
    for position, name in enumerate(names):
        inside = np.ascontiguousarray(values[owner == name], dtype=float)
        strata = np.zeros(len(inside), dtype=np.int64)
        weights = resamples(strata, n, hash_key(seed, "bootstrap", name))
        # einsum, not @: a threaded product may add in another order and change the last bits
        replicates[:, position] = np.einsum("ri,ic->rc", weights.astype(float), inside)
        sums[position], sizes[position] = inside.sum(axis=0), len(inside)
    return Resampled(names, sizes, sums, replicates, seed)
