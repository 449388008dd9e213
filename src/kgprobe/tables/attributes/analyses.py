"""Analyses of the nine benchmarks: partial scores (Figure 3), popularity (Figure 5), clusters.

All at the headline's setting (best prompt, @1, exact, own gold), of the probes that fill or write;
the intervals over clusters of all probes.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.attributes import ALL
from kgprobe.metrics.bootstrap import bootstrap, of_statistic
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.attributes.scores import VALUE
from kgprobe.tables.attributes.study import HEADLINE, SETTINGS, WHO, Study, filled, groups, of_row
from kgprobe.tables.results import Number, hit_rate

#: Benchmarks that are not built by popularity (docs/papers/attributes.md, Analyses).
UNBIASED = ("symmetry", "asymmetry", "bidirectional", "hierarchy")
#: Width of a bin of log10 of popularity.
BIN = 0.25
PARTIAL = "partial score"


def numbers(study: Study, alphas: pl.DataFrame) -> Iterator[Number]:
    """All numbers of this module."""
    own = alphas.filter(**HEADLINE)
    written = own.filter(filled())
    if written.height:
        yield from partial(study.parts(written), study.seed)
        yield from correlations(study.measure(written, patterns=True), study.seed)
        yield from popularity(study, written)
    if own.height:
        yield from clusters(study.parts(own), repeating(study), study.seed)


def partial(parts: pl.DataFrame, seed: int = 0) -> Iterator[Number]:
    """Mean partial score: how often a part is right; per cent.

    Over examples that are not missing. Entity_centric and bias have none.
    """
    own = parts.filter(~pl.col("missing")).drop_nulls("partial")
    for row, group in groups(own, "benchmark", *SETTINGS):
        boot = bootstrap(group.sort("example")["partial"].to_numpy(), seed=seed)
        value, interval = 100 * boot.mean(), boot.interval().times(100)
        yield of_row(row, metric=PARTIAL, value=value, interval=interval, n=group.height)


def correlations(measured: pl.DataFrame, seed: int = 0) -> Iterator[Number]:
    """Partial against full score: Pearson's and Spearman's correlation; n counts points.

    Over models (per benchmark), over benchmarks (per model), over patterns (per model, all
    benchmarks); `measured`: with patterns. Undefined scores are left out. Fewer than three points,
    or scores that do not vary, have none; fewer than six have no interval, and no claim is made
    from them; nor have those whose resamples are all the same.
    """
    points = measured.drop_nulls(["partial", "value_pooled"]).sort("benchmark", *WHO, "pattern")
    whole, single = (points.filter(is_all) for is_all in (_whole(), ~_whole()))
    for over, frame, keys in (
        ("over models", whole, ["benchmark"]),
        ("over benchmarks", whole, [*WHO]),
        ("over patterns", single, [*WHO]),
    ):
        for row, group in groups(frame, *keys):
            x, y = group["partial"].to_numpy(), group["value_pooled"].to_numpy()
            for correlate in (pearson, spearman):
                value, own = correlate(x, y), Number(metric=correlate.__name__, slice=over, **row)
                if value is not None:
                    interval = of_statistic(correlate, x, y, seed=seed) if len(x) > 5 else None
                    yield own.but(value=value, interval=interval, n=len(x))


def _whole() -> pl.Expr:
    return pl.col("pattern") == ALL


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Pearson's correlation; None for fewer than three points or no variation."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Spearman's correlation, ties with mean ranks; None as for `pearson`."""
    ranks = [pl.Series(v).rank("average").to_numpy() for v in (x, y)]
    return pearson(*ranks)


def popularity(study: Study, alphas: pl.DataFrame) -> Iterator[Number]:
    """Popularity of all examples and of those fully right (Figure 5).

    Popularity: mean degree of an example's distinct entities, literals left out. Right: all triples
    (asymmetry: the forward one and not the reversed). examples, examples right: how many lie in a
    `bin` of its log10; share right: of every decile of popularity, per cent; Kolmogorov-Smirnov:
    distance of the two samples, which share examples. n: examples.
    """
    right = fully_right(alphas)
    for benchmark in (name for name in UNBIASED if name in study.benchmarks):
        known = degrees(study.benchmarks[benchmark].examples)
        own = right.filter(benchmark=benchmark).join(known, on="example")
        for row, group in groups(own, "benchmark", *SETTINGS):
            yield from _histogram(of_row(row, metric="examples"), group.sort("example"))


def degrees(examples: pl.DataFrame) -> pl.DataFrame:
    """(example, popularity): mean degree of the distinct entities of every example."""
    sides = [
        examples.select("example", id=side, degree=f"{side}_degree")
        for side in ("subject", "object")
    ]
    distinct = pl.concat(sides).drop_nulls("degree").unique(["example", "id"])
    return distinct.group_by("example").agg(popularity=ordered_mean("degree")).sort("example")


def fully_right(alphas: pl.DataFrame) -> pl.DataFrame:
    """Whether all triples of an example are right, by benchmark and setting.

    Examples with a missing triple are left out; a fractional alpha is right from one half on.
    """
    reversed_ = (pl.col("benchmark") == "asymmetry") & (pl.col("position") == 1)
    right = pl.when(reversed_).then(1 - pl.col("alpha")).otherwise(pl.col("alpha"))
    found = alphas.group_by("benchmark", "example", *SETTINGS).agg(
        right=right.min() >= 0.5, missing=pl.col("alpha").null_count()
    )
    return found.filter(pl.col("missing") == 0).drop("missing")


def _histogram(base: Number, group: pl.DataFrame) -> Iterator[Number]:
    size = np.log10(np.maximum(group["popularity"].to_numpy(), 1.0))
    right = group["right"].to_numpy()
    edges = np.floor(size / BIN).astype(int)
    for edge in range(edges.min(), edges.max() + 1):
        inside, at = edges == edge, {"bin": edge * BIN}
        yield base.but(value=inside.sum(), n=len(size), setting=at)
        hits = (inside & right).sum()
        yield base.but(metric="examples right", value=hits, n=right.sum(), setting=at)
    order = np.argsort(size, kind="stable")
    for decile, members in enumerate(np.array_split(order, 10), 1):
        if len(members):
            hits, part = right[members].astype(float), f"decile {decile:02d} of popularity"
            yield base.but(metric="share right", slice=part, **hit_rate(hits))
    if right.any():
        distance = ks_distance(size, size[right])
        yield base.but(metric="Kolmogorov-Smirnov", value=distance, n=right.sum())


def ks_distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Largest difference of two empirical distribution functions."""
    points = np.unique(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(v), points, side="right") / len(v) for v in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


#: The end of a triple of an example (role, side) whose entity repeats over examples.
REPEATS = {
    "asymmetry": ("forward", "object"),
    "hierarchy": ("two_up", "object"),
    "composite": ("first", "subject"),
    "paths": ("hop1", "subject"),
    "bias": ("fact", "object"),
}


def repeating(study: Study) -> pl.DataFrame:
    """(example, cluster): the entity that repeats over the examples of a benchmark of REPEATS."""
    parts = [
        study.benchmarks[name].examples.filter(role=role).select("example", cluster=side)
        for name, (role, side) in REPEATS.items()
        if name in study.benchmarks
    ]
    return pl.concat([pl.DataFrame(schema={"example": pl.String, "cluster": pl.String}), *parts])


def clusters(parts: pl.DataFrame, entities: pl.DataFrame, seed: int = 0) -> Iterator[Number]:
    """The metric with intervals for which clusters are `drawn`, and not examples; per cent.

    Examples share relations, and some an entity, so that an interval over examples is too narrow.
    `entities`: `repeating`. n: clusters; one cluster, and clusters that are all alike, have no
    interval.
    """
    rows = parts.filter(pl.col("denominator") > 0).drop_nulls("numerator").sort("example")
    kinds = {
        "patterns": rows.with_columns(cluster="pattern"),
        "entities": rows.join(entities, on="example"),
    }
    for drawn, frame in kinds.items():
        for row, group in groups(frame, "benchmark", *SETTINGS):
            sums = group.select("numerator", "denominator").to_numpy()
            boot = bootstrap(sums, clusters=group["cluster"].to_list(), seed=seed)
            value, interval = boot.ratio(0, 1)
            made = of_row(row, metric=VALUE, value=100 * value, n=group["cluster"].n_unique())
            bounds = interval and interval.times(100)
            yield made.but(interval=bounds, setting={"drawn": drawn})
