"""Metrics of the nine attributes: equations 2 to 10 (docs/papers/attributes.md, Metrics).

Source: Mruthyunjaya, Pezeshkpour, Hruschka, Bhutani 2023, arXiv 2308.13676. No readable copy keeps
the formulas; they are rebuilt from the prose and tested against the printed numbers.

    ALPHAS (a row per triple)  --fractions-->  numerator, denominator (a row per example)
    --measure-->  value, interval, undefined, missing (a row per benchmark and setting, or pattern)

alpha in [0, 1] is the score of a triple at k. "and" is the product, "or" the maximum, which keeps
fractional scores within [0, 1]. The denominator is the paper's partial score.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.sums import ordered_mean, ordered_sum

KEYS = (1, 3, 5)
ALL = "all"
#: the pattern of a relation that is itself named as all of them together are
NAMED_ALL = "relation all"
ENTITY = "entity_centric"
#: benchmarks in which no triple is a condition of another one: no partial score
WITHOUT_PARTIAL = (ENTITY, "bias")

_A0, _A1, _A2 = (pl.col(f"a{i}") for i in range(3))
_EITHER = pl.max_horizontal("a0", "a1")
#: benchmark -> triples of an example, numerator, denominator; equation numbers are the paper's.
#: entity_centric has any number of triples (equation 3: their mean)
EQUATIONS: dict[str, tuple[int, pl.Expr, pl.Expr]] = {
    "symmetry": (2, _A0 * _A1, _EITHER),  # 2
    "asymmetry": (2, _A0 * (1 - _A1), pl.lit(1.0)),  # 4; a1 is the reversed probe
    "bidirectional": (2, _A0 * _A1, _EITHER),  # 5
    "hierarchy": (3, _A0 * _A1 * _A2, _A0 * _A1),  # 6
    "composite": (3, _A0 * _A1 * _A2, _A0 * _A1),  # 7
    "paths": (2, _A0 * _A1, _EITHER),  # 8
    "bias": (1, _A0, pl.lit(1.0)),  # 9
    "ambiguous": (2, _A0 * _A1, _EITHER),  # 10
}
AMBIGUOUS_DENOMINATORS = {"or": _EITHER, "head": _A0}


def fractions(
    alphas: pl.DataFrame,
    by: Sequence[str] = (),
    ambiguous_denominator: str = "or",
    patterns: bool = False,
) -> pl.DataFrame:
    """Compute the numerator and denominator of every example.

    `alphas`: benchmark, example, pattern, position, alpha (null: missing) and the columns `by`.
    Returns benchmark, `by`, example, pattern, numerator, denominator, partial (the partial score,
    null where there is none), missing; an example with a missing triple has null in the first three
    values. With `patterns` an example of entity_centric counts once per relation. Raises ValueError
    for an unknown benchmark, an alpha outside [0, 1] or a duplicate triple.
    """
    _check(alphas, by, ambiguous_denominator)
    frames = []
    for (name,), rows in alphas.sort("benchmark").group_by("benchmark", maintain_order=True):
        if name == ENTITY:
            part = _entity_fractions(rows, by, patterns)
        else:
            part = _fractions(rows, by, str(name), ambiguous_denominator)
        frames.append(part)
    keys = ["benchmark", *by, "example", "pattern"]
    columns = [*keys, "numerator", "denominator", "partial", "missing"]
    if not frames:
        raise ValueError("no alphas: nothing to measure")
    return pl.concat([frame.select(columns) for frame in frames]).sort(keys)


def _fractions(rows: pl.DataFrame, by: Sequence[str], name: str, denominator: str) -> pl.DataFrame:
    size, above, below = EQUATIONS[name]
    alpha = [
        pl.col("alpha").filter(pl.col("position") == i).first().alias(f"a{i}") for i in range(size)
    ]
    wide = rows.group_by("benchmark", *by, "example").agg(pl.col("pattern").first(), *alpha)
    if name == "ambiguous":
        below = AMBIGUOUS_DENOMINATORS[denominator]
    missing = pl.any_horizontal(pl.col(f"a{i}").is_null() for i in range(size))
    partial = _A0 if name == "asymmetry" else below
    if name in WITHOUT_PARTIAL:
        partial = pl.lit(None, dtype=pl.Float64)
    wide = wide.with_columns(missing=missing)
    values = {"numerator": above, "denominator": below, "partial": partial}
    return wide.with_columns(
        pl.when(~pl.col("missing")).then(value).cast(pl.Float64).alias(column)
        for column, value in values.items()
    )


def _entity_fractions(rows: pl.DataFrame, by: Sequence[str], patterns: bool) -> pl.DataFrame:
    """Average over the entity's triples, of all relations together or of each relation."""
    keys = ["benchmark", *by, "example", *(["pattern"] if patterns else [])]
    pattern = [] if patterns else [pl.lit(ALL).alias("pattern")]
    # the order of summation affects the last bits of the result
    wide = rows.sort("position").group_by(keys, maintain_order=True).agg(
        ordered_mean("alpha").alias("numerator"), pl.col("alpha").is_null().any().alias("missing")
    )  # fmt: skip
    kept = pl.when(~pl.col("missing"))
    return wide.with_columns(
        kept.then("numerator").alias("numerator"),
        kept.then(pl.lit(1.0)).alias("denominator"),
        pl.lit(None, dtype=pl.Float64).alias("partial"),
        *pattern,
    )


def _check(alphas: pl.DataFrame, by: Sequence[str], ambiguous_denominator: str) -> None:
    if ambiguous_denominator not in AMBIGUOUS_DENOMINATORS:
        legal = ", ".join(AMBIGUOUS_DENOMINATORS)
        raise ValueError(f"ambiguous_denominator {ambiguous_denominator!r}; valid: {legal}")
    unknown = set(alphas["benchmark"].unique()) - {*EQUATIONS, ENTITY}
    if unknown:
        legal = ", ".join(sorted([*EQUATIONS, ENTITY]))
        raise ValueError(f"no metric of {sorted(unknown)}; valid: {legal}")
    outside = alphas.filter(~pl.col("alpha").is_between(0, 1))
    if outside.height:
        raise ValueError(f"alpha must lie in [0, 1]: {outside.row(0, named=True)}")
    key = ["benchmark", *by, "example", "position"]
    twice = alphas.filter(pl.struct(key).is_duplicated())
    if twice.height:
        raise ValueError(f"a triple appears twice, key {key}: {twice.row(0, named=True)}")


def measure(
    alphas: pl.DataFrame,
    by: Sequence[str] = (),
    patterns: bool = False,
    seed: int = 0,
    ambiguous_denominator: str = "or",
) -> pl.DataFrame:
    """Compute the metric of every benchmark and setting `by`, and optionally of every pattern.

    Returns benchmark, `by`, pattern ("all"; a relation named all is NAMED_ALL), value_pooled (sum
    of numerators over sum of denominators), value_mean (mean of the ratios of defined examples),
    numerator, denominator, examples (none of their triples missing), undefined (denominator 0,
    dropped), missing, low, high, interval, partial (mean partial score of the examples). A value
    without a defined example is null. The interval is Wilson's on (numerator, denominator), or a
    bootstrap over examples where scores are fractional: entity_centric, and `kind` = token_mean or
    `pooling` = mean among `by`. If all bootstrap replicates are equal, Wilson's interval replaces
    it, named as such.
    """
    rows = fractions(alphas, by, ambiguous_denominator)
    frames = [_measured(rows.with_columns(pattern=pl.lit(ALL)), by, seed)]
    if patterns:
        split = fractions(alphas, by, ambiguous_denominator, patterns=True)
        named = pl.when(pl.col("pattern") == ALL).then(pl.lit(NAMED_ALL)).otherwise("pattern")
        frames.append(_measured(split.with_columns(pattern=named), by, seed))
    return pl.concat(frames).sort("benchmark", *by, "pattern")


def _measured(rows: pl.DataFrame, by: Sequence[str], seed: int) -> pl.DataFrame:
    keys = ["benchmark", *by, "pattern"]
    is_defined = pl.col("denominator") > 0
    above, below = (pl.col(name).filter(is_defined) for name in ("numerator", "denominator"))
    groups = rows.sort(*keys, "example").group_by(keys, maintain_order=True)
    table = groups.agg(
        value_mean=ordered_mean(above / below),
        numerator=ordered_sum(above),
        denominator=ordered_sum(below),
        examples=(~pl.col("missing")).sum().cast(pl.Int64),
        undefined=(~is_defined).sum().cast(pl.Int64),
        missing=pl.col("missing").sum().cast(pl.Int64),
        partial=ordered_mean("partial"),
    )
    of_groups = zip(table.iter_rows(named=True), groups, strict=True)
    bounds = [_bounds(row, group.filter(is_defined), seed) for row, (_, group) in of_groups]
    ends = {"low": pl.Float64, "high": pl.Float64, "interval": pl.String}
    pooled = (pl.col("numerator") / pl.col("denominator")).fill_nan(None)
    table = table.hstack(pl.DataFrame(bounds, schema=ends, orient="row"))
    return table.with_columns(value_pooled=pooled)


def _bounds(
    row: Mapping[str, Any], defined: pl.DataFrame, seed: int
) -> tuple[float | None, float | None, str]:
    if not defined.height:
        return None, None, "none"
    bounds, how = None, {row.get("kind"), row.get("pooling")}
    if row["benchmark"] == ENTITY or how & {"token_mean", "mean"}:
        sums = defined.select("numerator", "denominator").to_numpy()
        _, bounds = bootstrap(sums, seed=seed).ratio(0, 1)
    # sums of fractions may exceed their limits in the last bit
    right, n = min(row["numerator"], row["denominator"]), row["denominator"]
    return bounds or (*wilson(right, n), "wilson")
