"""Metrics of the nine attributes: equations 2 to 10 (docs/papers/attributes.md, Metrics).

Source: Mruthyunjaya, Pezeshkpour, Hruschka, Bhutani 2023, arXiv 2308.13676. No readable copy keeps
the formulas; they are rebuilt from the prose and tested against the printed numbers.

    ALPHAS (a row per triple)  --fractions-->  numerator, denominator (a row per example)
    --measure-->  value, interval, undefined, missing (a row per benchmark and setting, or pattern)

alpha in [0, 1] is the score of a triple at k. "and" is the product, "or" the maximum, which keeps
fractional scores within [0, 1]. The denominator is the paper's partial score.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.sums import ordered_mean

KEYS = (1, 3, 5)
ALL = "all"
ENTITY = "entity_centric"
#: no triple is a condition of another one, so there is no partial score
WITHOUT_PARTIAL = (ENTITY, "bias")

_A0, _A1, _A2 = (pl.col(f"a{i}") for i in range(3))
_EITHER = pl.max_horizontal("a0", "a1")
#: benchmark -> triples of an example, numerator, denominator; equation numbers are the paper's.
#: entity_centric has any number of triples (3: their mean)
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
    """Numerator and denominator of every example.

    `alphas`: benchmark, example, pattern, position, alpha (null: missing) and the columns `by`.
    Gives benchmark, `by`, example, pattern, numerator, denominator, partial (the partial score,
    null where there is none), missing; an example with a missing triple has null in all of them.
    With `patterns` an example of entity_centric counts once per relation. Raises ValueError for an
    unknown benchmark, an alpha outside [0, 1] or a triple that stands twice.
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
    """The mean over the entity's triples, of all relations together or of each."""
    keys = ["benchmark", *by, "example", *(["pattern"] if patterns else [])]
    pattern = [] if patterns else [pl.lit(ALL).alias("pattern")]
    # the order of the sum is part of the result's last bits
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
        raise ValueError(f"ambiguous_denominator {ambiguous_denominator!r}; legal: {legal}")
    unknown = set(alphas["benchmark"].unique()) - {*EQUATIONS, ENTITY}
    if unknown:
        legal = ", ".join(sorted([*EQUATIONS, ENTITY]))
        raise ValueError(f"no metric of {sorted(unknown)}; legal: {legal}")
    outside = alphas.filter(~pl.col("alpha").is_between(0, 1))
    if outside.height:
        raise ValueError(f"alpha must lie in [0, 1]: {outside.row(0, named=True)}")
    key = ["benchmark", *by, "example", "position"]
    twice = alphas.filter(pl.struct(key).is_duplicated())
    if twice.height:
        raise ValueError(f"a triple stands twice, key {key}: {twice.row(0, named=True)}")


def measure(
    alphas: pl.DataFrame,
    by: Sequence[str] = (),
    patterns: bool = False,
    seed: int = 0,
    ambiguous_denominator: str = "or",
) -> pl.DataFrame:
    """The metric of every benchmark and setting `by`, or also of every pattern.

    Gives benchmark, `by`, pattern ("all"), value_pooled (sum of numerators over sum of
    denominators), value_mean (mean of the ratios of defined examples), numerator, denominator,
    examples (none of their triples missing), undefined (denominator 0, dropped), missing, low,
    high, interval, partial (mean partial score of the examples). A value without defined example
    is null. The interval is Wilson's on (numerator, denominator); a bootstrap over examples where
    scores are fractional by nature: entity_centric, and `kind` = token_mean or `pooling` = mean
    among `by`. Where all its replicates are the same, Wilson's takes its place, by name, too.
    """
    rows = fractions(alphas, by, ambiguous_denominator)
    frames = [_measured(rows.with_columns(pattern=pl.lit(ALL)), by, seed)]
    if patterns:
        split = fractions(alphas, by, ambiguous_denominator, patterns=True)
        frames.append(_measured(split, by, seed))
    return pl.concat(frames).sort("benchmark", *by, "pattern")


def _measured(rows: pl.DataFrame, by: Sequence[str], seed: int) -> pl.DataFrame:
    keys = ["benchmark", *by, "pattern"]
    records = []
    for key, group in rows.sort(*keys, "example").group_by(keys, maintain_order=True):
        fields = dict(zip(keys, key, strict=True))
        fractional = fields["benchmark"] == ENTITY or fields.get("kind") == "token_mean"
        fractional = fractional or fields.get("pooling") == "mean"
        records.append({**fields, **_score(group, fractional, seed)})
    schema = {k: rows.schema[k] for k in keys}
    return pl.DataFrame(records, schema={**schema, **_SCORE})


_SCORE = {
    **dict.fromkeys(("value_pooled", "value_mean", "numerator", "denominator"), pl.Float64),
    **dict.fromkeys(("examples", "undefined", "missing"), pl.Int64),
    **dict.fromkeys(("low", "high"), pl.Float64),
    "interval": pl.String,
    "partial": pl.Float64,
}


def _score(group: pl.DataFrame, fractional: bool, seed: int) -> dict[str, object]:
    complete = group.filter(~pl.col("missing"))
    above, below = complete["numerator"].to_numpy(), complete["denominator"].to_numpy()
    defined = below > 0
    above, below = above[defined], below[defined]
    pooled = mean = low = high = None
    interval = "none"
    if defined.any():
        pooled, mean = float(above.sum() / below.sum()), float((above / below).mean())
        # sums of fractions may differ from their limits in the last bit
        sums = min(float(above.sum()), float(below.sum())), float(below.sum())
        bounds = None
        if fractional:
            _, bounds = bootstrap(np.column_stack([above, below]), seed=seed).ratio(0, 1)
        low, high, interval = bounds or (*wilson(*sums), "wilson")
    return {
        "value_pooled": pooled,
        "value_mean": mean,
        "numerator": float(above.sum()),
        "denominator": float(below.sum()),
        "examples": complete.height,
        "undefined": int((~defined).sum()),
        "missing": group.height - complete.height,
        "low": low,
        "high": high,
        "interval": interval,
        "partial": complete.select(ordered_mean("partial")).item(),
    }
