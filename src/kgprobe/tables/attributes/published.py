"""The printed Tables 1 and 2, and their arithmetic consequences (docs/papers/attributes.md).

The paper prints ratios in per cent to two decimals and no denominators. The denominators that a
value admits show which metric can have produced it: counts out of a known number of examples, or
ratios of two counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.metrics.attributes import KEYS as KS
from kgprobe.tables.published import read_tsv

NAMES = (
    "symmetry", "asymmetry", "bidirectional", "hierarchy", "paths", "composite", "entity_centric",
    "bias", "ambiguous",
)  # fmt: skip
SCORES = {
    **dict.fromkeys(("benchmark", "model", "printed_model"), pl.String),
    **{f"at_{k}": pl.Float64 for k in KS},
}
SIZES = {
    "benchmark": pl.String,
    **dict.fromkeys(("triples", "predicates", "entities"), pl.Int64),
    **dict.fromkeys(("triples_per_predicate", "example"), pl.String),
}
#: consequences of a benchmark's printed values, as the report prints them
ARITHMETIC = {
    "benchmark": pl.String,
    "values that are not zero": pl.Int64,
    "sizes up to 1,500 that fit all": pl.String,
    "smallest denominators, geometric mean": pl.Int64,
    "falls somewhere with k": pl.String,
    "Table 1": pl.String,
}


@dataclass(frozen=True)
class PublishedAttributes:
    """Table 1 by benchmark and column (the ratio as text), Table 2 by benchmark, model and k, rows
    of ARITHMETIC. Values not printed are absent."""

    sizes: Mapping[str, Mapping[str, Any]]
    scores: Mapping[tuple[str, str, int], float]
    arithmetic: Sequence[Mapping[str, Any]]


def read(folder: str | Path) -> PublishedAttributes:
    """Read the attributes' tables from the folder of published figures."""
    sizes, scores, arithmetic = (
        read_tsv(Path(folder) / f"attributes_{name}.tsv", columns).rows(named=True)
        for name, columns in (("sizes", SIZES), ("scores", SCORES), ("arithmetic", ARITHMETIC))
    )
    at = {(row["benchmark"], row["printed_model"], k): row[f"at_{k}"] for row in scores for k in KS}
    return PublishedAttributes(
        {row["benchmark"]: row for row in sizes},
        {key: value for key, value in at.items() if value is not None},
        arithmetic,
    )
