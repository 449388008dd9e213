"""Analyses of the nine benchmarks: partial scores (Figure 3), popularity (Figure 5), clusters."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.attributes import measure
from kgprobe.metrics.intervals import (
    bootstrap_mean,
    has_width,
    of_share,
    percentile,
    resamples,
    wilson,
)
from kgprobe.metrics.sums import ordered_mean, ordered_sum
from kgprobe.sampling import hash_key
from kgprobe.tables import table
from kgprobe.tables.attributes_baselines import METHOD as BASELINE
from kgprobe.tables.attributes_published import BENCHMARKS
from kgprobe.tables.attributes_study import HEADLINE, RANKED, SETTINGS, Study
from kgprobe.tables.attributes_tables import NAMES, cell, percent

#: Partial scores are denominators; entity_centric and bias have none (section 8.1).
PARTIAL = tuple(name for name in BENCHMARKS if name not in ("entity_centric", "bias"))
#: Benchmarks that are not built by popularity (section 8.3).
UNBIASED = ("symmetry", "asymmetry", "bidirectional", "hierarchy")
#: Width of a bin of log10 of popularity.
BIN = 0.25
BOOTSTRAP = 1000
MODEL = ["model", "method"]


def tables(study: Study, alphas: pl.DataFrame, parts: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Every table of this module that applies, by name."""
    asked = ~pl.col("method").is_in([BASELINE])
    filled = asked & ~pl.col("method").str.starts_with(RANKED)
    scores = partial_scores(parts.filter(filled), study.seed)
    found = {
        "kg_partial": partial_table(scores) if scores.height else None,
        "kg_correlation": correlations(scores, study.seed),
        "kg_popularity": popularity(study, alphas.filter(filled)),
        "kg_clusters": clusters(parts.filter(asked), repeating(study), study.seed),
        "kg_ambiguous": ambiguous(study, alphas.filter(filled)),
    }
    return {name: frame for name, frame in found.items() if frame is not None}


def partial_scores(parts: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """(benchmark, model, method, pattern, partial, full, low, high, n): Figure 3's numbers, @1.

    Partial: mean partial score over examples that are not missing. Full: the metric, null where
    undefined. Pattern "all", then each. The interval is a bootstrap over examples, Wilson's where
    that has no width.
    """
    own = _headline(parts).filter(~pl.col("missing") & pl.col("partial").is_not_null())
    rows = []
    for keys in (["benchmark", *MODEL], ["benchmark", *MODEL, "pattern"]):
        for key, group in sorted(own.group_by(keys), key=lambda g: str(g[0])):
            values = group.sort("example")["partial"].to_numpy()
            below = group.select(ordered_sum("denominator")).item()
            full = group.select(ordered_sum("numerator")).item() / below if below else None
            low, high = None, None
            if len(key) == 3:
                strata = np.zeros(len(values), dtype=np.int64)
                weights = resamples(strata, BOOTSTRAP, hash_key(seed, "partial", *map(str, key)))
                drawn = bootstrap_mean(values, weights)
                (low, high), _ = of_share(drawn, float(values.sum()), len(values))
            named = (*key, "all") if len(key) == 3 else key
            rows.append((*named, float(values.mean()), full, low, high, len(values)))
    columns = ("benchmark", *MODEL, "pattern", "partial", "full", "low", "high", "n")
    types = dict.fromkeys(columns, pl.String) | dict.fromkeys(columns[4:8], pl.Float64)
    return pl.DataFrame(rows, schema=types | {"n": pl.Int64}, orient="row")


def partial_table(scores: pl.DataFrame) -> pl.DataFrame | None:
    """`kg_partial`: partial and full score per benchmark and model, per cent. n: examples."""
    cells = []
    for m in scores.filter(pattern="all").iter_rows(named=True):
        name = f"{m['benchmark']} | {m['model']} | {m['method']}"
        interval = (100 * m["low"], 100 * m["high"])
        cells.append(cell("kg_partial", name, "partial", 100 * m["partial"], m["n"], interval))
        if m["full"] is not None:
            cells.append(cell("kg_partial", name, "full", 100 * m["full"], m["n"]))
    return table.build(cells) if cells else None


def correlations(scores: pl.DataFrame, seed: int = 0) -> pl.DataFrame | None:
    """`kg_correlation`: partial against full score; Pearson and Spearman, n, bootstrap interval.

    Over models (per benchmark), over benchmarks (per model), over patterns (per model, all
    benchmarks). Undefined scores are left out. Fewer than three points, or scores that do not vary,
    have none; fewer than six have no interval, and no claim is made from them; nor have those whose
    resamples are all the same.
    """
    cells = []
    for name, group in _groups(scores):
        pairs = group.drop_nulls("full").sort("benchmark", *MODEL, "pattern")
        x, y = pairs["partial"].to_numpy(), pairs["full"].to_numpy()
        for column, correlate in (("pearson", pearson), ("spearman", spearman)):
            value = correlate(x, y)
            if value is None:
                continue
            interval = None
            if len(x) > 5:
                strata = np.zeros(len(x), dtype=np.int64)
                weights = resamples(strata, BOOTSTRAP, hash_key(seed, "correlation", name))
                drawn = [correlate(np.repeat(x, w), np.repeat(y, w)) for w in weights]
                known = np.array([d for d in drawn if d is not None])
                interval = percentile(known) if len(known) else None
                interval = interval if interval and has_width(interval) else None
            cells.append(cell("kg_correlation", name, column, value, len(x), interval))
    return table.build(cells) if cells else None


def _groups(scores: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    whole, single = (scores.filter(is_all) for is_all in (_all(), ~_all()))
    for benchmark in PARTIAL:
        yield f"over models | {benchmark}", whole.filter(benchmark=benchmark)
    models = scores.select(MODEL).unique().sort(MODEL).rows()
    for model, method in models:
        yield f"over benchmarks | {model} | {method}", whole.filter(model=model, method=method)
        yield f"over patterns | {model} | {method}", single.filter(model=model, method=method)


def _all() -> pl.Expr:
    return pl.col("pattern") == "all"


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Pearson's correlation; None for fewer than three points or no variation."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    dx, dy = x - x.mean(), y - y.mean()
    return float((dx * dy).sum() / np.sqrt((dx**2).sum() * (dy**2).sum()))


def spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Spearman's correlation, ties with mean ranks; None as for `pearson`."""
    ranks = [pl.Series(v).rank("average").to_numpy() for v in (x, y)]
    return pearson(*ranks)


def popularity(study: Study, alphas: pl.DataFrame) -> pl.DataFrame | None:
    """`kg_popularity` (Figure 5): popularity of all examples and of those fully right, @1.

    Popularity: mean degree of an example's distinct entities, literals left out. Right: all triples
    (asymmetry: the forward one and not the reversed). Rows: benchmark | model | method, then the
    lower edge of a bin of log10 with the columns all and right (counts), or a decile of popularity
    with the share that is right (Wilson), or `distance` (two-sample Kolmogorov-Smirnov; the two
    samples share examples). n: examples.
    """
    cells = []
    right = fully_right(_headline(alphas))
    for benchmark in UNBIASED:
        if benchmark not in study.benchmarks:
            continue
        known = degrees(study.benchmarks[benchmark].examples)
        own = right.filter(benchmark=benchmark).join(known, on="example")
        for key, group in sorted(own.group_by(MODEL), key=lambda g: str(g[0])):
            name = f"{benchmark} | {key[0]} | {key[1]}"
            cells += _histogram(name, group.sort("example"))
    return table.build(cells) if cells else None


def degrees(examples: pl.DataFrame) -> pl.DataFrame:
    """(example, popularity): mean degree of the distinct entities of every example."""
    sides = [
        examples.select("example", id=side, degree=f"{side}_degree")
        for side in ("subject", "object")
    ]
    distinct = pl.concat(sides).drop_nulls("degree").unique(["example", "id"])
    return distinct.group_by("example").agg(popularity=ordered_mean("degree")).sort("example")


def fully_right(alphas: pl.DataFrame) -> pl.DataFrame:
    """(benchmark, example, model, method, right): whether all triples of an example are right.

    Examples with a missing triple are left out; a fractional alpha is right from one half on.
    """
    reversed_ = (pl.col("benchmark") == "asymmetry") & (pl.col("position") == 1)
    right = pl.when(reversed_).then(1 - pl.col("alpha")).otherwise(pl.col("alpha"))
    found = alphas.group_by("benchmark", "example", *MODEL).agg(
        right=right.min() >= 0.5, missing=pl.col("alpha").null_count()
    )
    return found.filter(pl.col("missing") == 0).drop("missing")


def _histogram(name: str, group: pl.DataFrame) -> list[dict[str, object]]:
    """Cells of one benchmark and model."""
    make = partial(cell, "kg_popularity")
    size = np.log10(np.maximum(group["popularity"].to_numpy(), 1.0))
    right = group["right"].to_numpy()
    edges = np.floor(size / BIN).astype(int)
    cells = []
    for edge in range(edges.min(), edges.max() + 1):
        inside = edges == edge
        row = f"{name} | bin {edge * BIN:05.2f}"
        cells.append(make(row, "all", inside.sum(), len(size)))
        cells.append(make(row, "right", (inside & right).sum(), int(right.sum())))
    order = np.argsort(size, kind="stable")
    for decile, members in enumerate(np.array_split(order, 10), 1):
        if len(members):
            hits = int(right[members].sum())
            low, high = wilson(hits, len(members))
            value, interval = 100 * hits / len(members), (100 * low, 100 * high)
            row = f"{name} | decile {decile:02d}"
            cells.append(make(row, "right, %", value, len(members), interval))
    if right.any():
        distance = ks_distance(size, size[right])
        cells.append(make(f"{name} | distance", "Kolmogorov-Smirnov", distance, int(right.sum())))
    return cells


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
    """(example, entity): the entity that repeats over the examples of a benchmark of REPEATS."""
    parts = [
        study.benchmarks[name].examples.filter(role=role).select("example", entity=side)
        for name, (role, side) in REPEATS.items()
        if name in study.benchmarks
    ]
    empty = pl.DataFrame(schema={"example": pl.String, "entity": pl.String})
    return pl.concat([empty, *parts])


def clusters(
    parts: pl.DataFrame, entities: pl.DataFrame | None = None, seed: int = 0
) -> pl.DataFrame | None:
    """`kg_clusters`: intervals when clusters are drawn and not examples; @1, best, per cent.

    Examples share relations, and some an entity, so that an interval over examples is too narrow.
    `entities`: `repeating`. Row: model | method | over patterns, or over entities; column:
    benchmark. n: clusters; one cluster, and clusters that are all alike, have no interval.
    """
    rows = _headline(parts).filter(pl.col("denominator") > 0).drop_nulls("numerator")
    kinds = {"patterns": rows.rename({"pattern": "cluster"})}
    if entities is not None:
        kinds["entities"] = rows.join(entities.rename({"entity": "cluster"}), on="example")
    cells = []
    for kind, frame in kinds.items():
        sums = frame.group_by("benchmark", *MODEL, "cluster")
        total = sums.agg(ordered_sum(["numerator", "denominator"])).sort("cluster")
        for benchmark, (model, method) in product(
            BENCHMARKS, frame.select(MODEL).unique().sort(MODEL).rows()
        ):
            own = total.filter(benchmark=benchmark, model=model, method=method)
            if own.height:
                key = hash_key(seed, "clusters", benchmark, model)
                value, interval = _clustered(own, key)
                name = f"{model} | {method} | over {kind}"
                cells.append(cell("kg_clusters", name, benchmark, value, own.height, interval))
    return table.build(cells) if cells else None


def _clustered(own: pl.DataFrame, seed: int) -> tuple[float, tuple[float, float] | None]:
    """Ratio of the sums of clusters, and its bootstrap interval; per cent."""
    top, bottom = own["numerator"].to_numpy(), own["denominator"].to_numpy()
    weights = resamples(np.zeros(own.height, dtype=np.int64), BOOTSTRAP, seed)
    low, high = percentile((weights @ top) / (weights @ bottom))
    interval = (100 * low, 100 * high) if has_width((low, high)) else None
    return 100 * top.sum() / bottom.sum(), interval


def ambiguous(study: Study, alphas: pl.DataFrame) -> pl.DataFrame | None:
    """`kg_ambiguous`: pairs of one name by whether their objects are equal, @1, per cent.

    Head and tail are asked with one text, so that with one prompt only equal objects can be right.
    Columns: all pairs, pairs whose objects differ, pairs whose objects are equal, and all pairs
    under the other reading of the denominator (the head alone). Row: model | method | pooling. n:
    pairs. What is undefined has no cell.
    """
    if "ambiguous" not in study.benchmarks:
        return None
    examples = study.benchmarks["ambiguous"].examples
    same = examples.filter(pl.col("flags").list.contains("same_object"))["example"].unique()
    own = alphas.filter(benchmark="ambiguous", k=1, kind="exact", gold="own")
    own = own.filter(pl.col("pooling").is_in(["best", "mean"]))
    is_same = pl.col("example").is_in(same.implode())
    readings = (
        ("all pairs", own, "or"),
        ("objects differ", own.filter(~is_same), "or"),
        ("objects equal", own.filter(is_same), "or"),
        ("all pairs, given the head", own, "head"),
    )
    cells = []
    for column, rows, denominator in readings:
        if not rows.height:
            continue
        found = measure(rows, by=SETTINGS, ambiguous_denominator=denominator, seed=study.seed)
        for m in found.iter_rows(named=True):
            name = f"{m['model']} | {m['method']} | {NAMES[m['pooling']]}"
            if m["value_pooled"] is not None:
                value, interval = 100 * m["value_pooled"], percent(m)
                cells.append(cell("kg_ambiguous", name, column, value, m["examples"], interval))
    return table.build(cells) if cells else None


def _headline(frame: pl.DataFrame) -> pl.DataFrame:
    """@1, exact, own gold, best prompt."""
    return frame.filter(**HEADLINE)
