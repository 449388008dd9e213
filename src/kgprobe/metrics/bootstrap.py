"""Bootstrap percentile intervals of means, ratios of sums and their paired differences.

    boot = bootstrap(values, strata=relations)      items x columns (models, metrics); values 0..1
    boot.mean(0), boot.interval(0)                  all items; Wilson's if all draws are equal
    boot.mean(0, boot.macro()), boot.interval(0, boot.macro())    every relation weighs the same
    boot.difference(0, 1)                           paired: the same draws for all columns
    boot.ratio(0, 1)                                sum of column 0 over sum of column 1

Stratified: units are drawn within their stratum. The draws of a stratum depend only on the seed,
its name and its size, so they are the same for every model and template (differences are paired,
also across calls) and do not change when another stratum is added. Of n units, n - 1 are drawn and
weigh n / (n - 1) each, because n of n have a variance of (n - 1)/n of the true one (Rao and Wu
1988, Resampling inference with complex survey data). Strata of one unit, which alone would not
vary, are drawn as one stratum (Cochran 1977, Sampling techniques, section 5A.12), so their draws
depend on which strata these are. Percentiles are widened by the ratio of Student's t to the normal
distribution (Hesterberg 2015, What teachers should know about the bootstrap).

Clustered: with `clusters`, whole groups of units (of a relation, an entity, a configuration) are
drawn, and the mean is still over units. Values that are one per cluster (the mean of a relation)
need no `clusters`: they are the units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kgprobe.metrics.intervals import Interval, percentile, resamples, wilson
from kgprobe.sampling import hash_key

Numbers = NDArray[np.float64]
DRAWS = 2000
#: size up to which the draws of many strata are cached
SMALL = 1000


@dataclass(frozen=True)
class Bootstrap:
    """Sums of unit values per stratum: observed, and in every draw. The last column is the number
    of units."""

    strata: list[str]
    counts: Numbers  #: number of nonzero units or clusters drawn: strata x (columns + 1)
    sums: Numbers  #: strata x (columns + 1)
    drawn: Numbers  #: draws x strata x (columns + 1)
    kind: str = "bootstrap"

    @property
    def sizes(self) -> Numbers:
        """Number of units per stratum."""
        return np.asarray(self.sums[:, -1])

    def macro(self) -> Numbers:
        """Return weights (one per stratum) under which every stratum counts the same."""
        return np.asarray(1.0 / self.sizes)

    def degrees_of_freedom(self, below: int = -1, weights: Numbers | None = None) -> float:
        """Degrees of freedom of a weighted mean, or of a ratio over the sum of column `below`.

        Satterthwaite's (1946), if all units vary alike: units minus strata for strata of one size
        and weight, and few if small strata weigh most; strata of one unit are one stratum. Less
        than the number of nonzero units in the sum of `below`.
        """
        used = np.ones(len(self.sizes)) if weights is None else weights
        units, parts = self.counts[:, -1], (used * self.sizes) ** 2 / self.counts[:, -1]
        one = units == 1
        units, parts = np.append(units[~one], one.sum()), np.append(parts[~one], parts[one].sum())
        varies = (units > 1) & (parts > 0)
        spread = (parts[varies] ** 2 / (units[varies] - 1)).sum()
        drawn = parts[varies].sum() ** 2 / spread if varies.any() else 1.0
        return float(max(1, min(drawn, self.counts[used > 0, below].sum() - 1)))

    def mean(self, column: int = 0, weights: Numbers | None = None) -> float:
        """Weighted mean over units; `weights` per stratum (default: all units weigh the same)."""
        return float(_ratio(self.sums, column, -1, weights))

    def draws(self, column: int = 0, weights: Numbers | None = None) -> Numbers:
        """Return `mean` in every draw.

        Clusters that are drawn have other numbers of units than their stratum; a weight is of the
        stratum, whose mean counts as much as before (strata of one cluster are one stratum).
        """
        if weights is None or self.kind == "bootstrap":
            return _ratio(self.drawn, column, -1, weights)
        several = self.counts[:, -1] > 1
        drawn = self.drawn[:, :, [column, -1]]
        scale = np.where(several, self.sizes / np.where(several, drawn[:, :, 1], 1), 1)
        return _ratio(drawn * scale[:, :, None], 0, 1, weights)

    def interval(
        self, column: int = 0, weights: Numbers | None = None, is_proportion: bool = False
    ) -> Interval:
        """Return 95 % bounds of `mean`, for units in 0..1.

        Wilson's interval for a proportion of units (each right or wrong, all weighing the same),
        and if all draws are equal: all right, all wrong or one unit have no spread to resample. The
        variance of a mean of values in 0..1 is at most that of a proportion.
        """
        degrees = self.degrees_of_freedom(weights=weights)
        bounds = of_draws(self.draws(column, weights), self.kind, degrees)
        if bounds and not is_proportion:
            return bounds
        used = np.ones(len(self.sizes)) if weights is None else weights
        n, value = float((used > 0) @ self.counts[:, -1]), self.mean(column, weights)
        return Interval(*wilson(min(max(value, 0.0), 1.0) * n, n), "wilson")

    def difference(
        self, column: int, other: int, weights: Numbers | None = None
    ) -> tuple[float, Interval | None]:
        """Return the mean of `column` minus that of `other`, and the interval of the paired
        difference.

        The interval is None if the difference is the same in every draw.
        """
        gap = self.draws(column, weights) - self.draws(other, weights)
        value = self.mean(column, weights) - self.mean(other, weights)
        return value, of_draws(gap, f"paired {self.kind}", self.degrees_of_freedom(weights=weights))

    def ratio(
        self, above: int, below: int, less: int | None = None
    ) -> tuple[float, Interval | None]:
        """Return the sum of column `above` over that of `below`, and its interval (None if all
        draws are equal). `less`: column whose ratio over `below` is subtracted (paired difference).

        Draws with a denominator of 0 do not count. Raises ValueError if the observed one is 0.
        """
        if self.sums[:, below].sum() == 0:
            raise ValueError("a ratio over a sum of 0 is not defined")
        defined = self.drawn[self.drawn[:, :, below].sum(axis=1) != 0]
        value, draws = _ratio(self.sums, above, below), _ratio(defined, above, below)
        degrees = self.degrees_of_freedom(below)
        if less is None:
            return float(value), of_draws(draws, self.kind, degrees)
        draws = draws - _ratio(defined, less, below)
        value = value - _ratio(self.sums, less, below)
        return float(value), of_draws(draws, f"paired {self.kind}", degrees)


def bootstrap(
    values: Numbers,
    strata: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> Bootstrap:
    """Resample `values` (units x columns, or one column).

    `strata`: the name of each unit's stratum (default: one stratum). `clusters`: the name of each
    unit's cluster, within its stratum. Units must be in the same order in every call (sorted by
    item); clusters are sorted by name here. Raises ValueError if lengths differ or there are no
    values.
    """
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    owner = np.asarray(strata if strata is not None else [""] * len(values))
    for names in (owner, clusters):
        if names is not None and len(names) != len(values):
            raise ValueError(f"{len(values)} rows of values for {len(names)} items")
    if not len(values):
        raise ValueError("nothing to resample: no rows of values")
    rows = np.column_stack([values, np.ones(len(values))])
    if clusters is not None:
        rows, owner = _summed(rows, owner, np.asarray(clusters))
    names = sorted(set(owner.tolist()))
    drawn = np.empty((draws, len(names), rows.shape[1]))
    counts, sums = np.empty((2, len(names), rows.shape[1]))
    for position, name in enumerate(names):
        inside = rows[owner == name]
        weights = _weights(len(inside), draws, hash_key(seed, "bootstrap", name))
        # einsum, not @: a threaded product may add in another order and change the last bits
        summed = np.einsum("ir,ic->cr", weights.astype(float), inside).T
        drawn[:, position] = summed * len(inside) / max(1, len(inside) - 1)
        sums[position], counts[position] = inside.sum(axis=0), (inside != 0).sum(axis=0)
    single = np.flatnonzero(counts[:, -1] == 1)
    if len(single) > 1:
        key = hash_key(seed, "bootstrap", *(names[position] for position in single))
        often = _weights(len(single), draws, key).T[:, :, None]
        drawn[:, single] = often * sums[single] * len(single) / (len(single) - 1)
    kind = "bootstrap" if clusters is None else "cluster bootstrap"
    return Bootstrap(names, counts, sums, drawn, kind)


def of_draws(
    values: Numbers, kind: str = "bootstrap", degrees_of_freedom: float = np.inf
) -> Interval | None:
    """Return percentile bounds of draws, or None if there are none or all are equal."""
    if not len(values):
        return None
    low, high = percentile(values, degrees_of_freedom)
    return Interval(low, high, kind) if high - low > 1e-12 else None


def mean_of_ratios(sums: Numbers, weights: Numbers) -> Numbers:
    """Weighted mean of ratios over columns and strata (means, if the denominators count units).
    `sums` (..., strata, 2 x columns + 1): numerators, then denominators, then unit counts;
    `weights`: strata x columns. A ratio over a sum of 0 does not count; if none counts, the mean is
    nan."""
    count = weights.shape[1]
    above, below = sums[..., :count], sums[..., count : 2 * count]
    held = weights * (below > 0)
    ratios = above / np.where(below > 0, below, 1)
    top, whole = (held * ratios).sum((-2, -1)), held.sum((-2, -1))
    return np.asarray(np.where(whole > 0, top / np.where(whole > 0, whole, 1), np.nan))


def _ratio(sums: Numbers, above: int, below: int, weights: Numbers | None = None) -> Numbers:
    """Return the ratio of weighted sums over strata (the second-to-last axis)."""
    w = np.ones(sums.shape[-2]) if weights is None else weights
    top, bottom = (w * sums[..., above]).sum(axis=-1), (w * sums[..., below]).sum(axis=-1)
    return np.asarray(top / bottom)


def _weights(size: int, draws: int, seed: int) -> NDArray[np.uint8]:
    """Return how often each unit (row) occurs in every draw."""
    return (_of_small if size <= SMALL else _of_large)(size, draws, seed)


def _resampled(size: int, draws: int, seed: int) -> NDArray[np.uint8]:
    return np.ascontiguousarray(resamples(size, draws, seed).T, np.uint8)


# cached for the next metric; for large strata memory may allow only one matrix
_of_small, _of_large = lru_cache(maxsize=64)(_resampled), lru_cache(maxsize=1)(_resampled)


def _summed(
    rows: Numbers, owner: NDArray[np.str_], clusters: NDArray[np.str_]
) -> tuple[Numbers, NDArray[np.str_]]:
    """Return each cluster's sums and stratum. Raises ValueError for a cluster in two strata."""
    names, place = np.unique(clusters, return_inverse=True)
    strata = np.empty(len(names), dtype=owner.dtype)
    strata[place] = owner
    torn = clusters[strata[place] != owner]
    if len(torn):
        raise ValueError(f"cluster {str(torn[0])!r} lies in two strata")
    sums = np.zeros((len(names), rows.shape[1]))
    np.add.at(sums, place, rows)
    return sums, strata
