"""What follows by arithmetic from the printed Tables 1 and 2 (docs/papers/attributes.md).

The paper prints ratios in per cent to two decimals and no denominators. Which denominators a value
admits tells which metric can have made it: counts out of a known number of examples, or ratios of
two counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, gcd, log
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.metrics.attributes import KEYS as KS
from kgprobe.settings import ATTRIBUTES
from kgprobe.tables.published import read_tsv

BENCHMARKS = (
    "symmetry",
    "asymmetry",
    "bidirectional",
    "hierarchy",
    "paths",
    "composite",
    "entity_centric",
    "bias",
    "ambiguous",
)
#: those of the paper, then any others
NAMES = (*BENCHMARKS, *(name for name in ATTRIBUTES if name not in BENCHMARKS))
#: A printed value is this near to the ratio that it stands for, in per cent.
ROUNDING = 0.00501
SCORES = {
    "benchmark": pl.String,
    "model": pl.String,
    "printed_model": pl.String,
    **{f"at_{k}": pl.Float64 for k in KS},
}
SIZES = {
    "benchmark": pl.String,
    "triples": pl.Int64,
    "predicates": pl.Int64,
    "entities": pl.Int64,
    "triples_per_predicate": pl.String,
    "example": pl.String,
}


@dataclass(frozen=True)
class Published:
    """Table 1 by benchmark and column (the ratio as text), Table 2 by benchmark, model and k.

    What is not printed is absent.
    """

    sizes: Mapping[str, Mapping[str, Any]]
    scores: Mapping[tuple[str, str, int], float]

    @property
    def models(self) -> list[str]:
        """The models of Table 2 in its order."""
        return list(dict.fromkeys(model for _, model, _ in self.scores))

    def values(self, benchmark: str) -> list[float]:
        """The values of a benchmark that are not zero, over models and k."""
        return [v for (name, _, _), v in self.scores.items() if name == benchmark and v > 0]

    def series(self, benchmark: str, model: str) -> list[float]:
        """The values of a model at 1, 3, 5 as far as they are printed."""
        found = [self.scores.get((benchmark, model, k)) for k in KS]
        return [value for value in found if value is not None]


def read(folder: str | Path) -> Published:
    """`attributes_sizes.tsv` and `attributes_scores.tsv` of the folder of published figures."""
    sizes = read_tsv(Path(folder) / "attributes_sizes.tsv", SIZES)
    scores = read_tsv(Path(folder) / "attributes_scores.tsv", SCORES)
    return Published(
        {row["benchmark"]: row for row in sizes.iter_rows(named=True)},
        {
            (row["benchmark"], row["printed_model"], k): row[f"at_{k}"]
            for row in scores.iter_rows(named=True)
            for k in KS
            if row[f"at_{k}"] is not None
        },
    )


def numerator(value: float, size: int) -> int | None:
    """The count out of `size` that prints as `value` per cent, or None.

    >>> numerator(54.10, 732), numerator(54.10, 731)
    (396, None)
    """
    near = round(value * size / 100)
    return near if abs(100 * near / size - value) <= ROUNDING else None


def sizes_that_fit(values: Sequence[float], sizes: Iterable[int]) -> list[int]:
    """Those of `sizes` of which every one of `values` is a share."""
    return [size for size in sizes if all(numerator(v, size) is not None for v in values)]


def smallest_fraction(value: float, most: int = 10_000) -> tuple[int, int]:
    """The fraction with the smallest denominator that prints as `value` per cent.

    Its denominator is a lower bound of the true one. Raises ValueError when none up to `most` fits.

    >>> smallest_fraction(68.18)
    (15, 22)
    """
    for size in range(1, most + 1):
        count = numerator(value, size)
        if count is not None and gcd(count, size) == 1:
            return count, size
    raise ValueError(f"no fraction with a denominator up to {most} prints as {value}")


def mean_smallest(values: Sequence[float]) -> float:
    """Geometric mean of the smallest denominators of `values`."""
    return exp(sum(log(smallest_fraction(v)[1]) for v in values) / len(values))


def falling(published: Published) -> list[tuple[str, str]]:
    """(benchmark, model) whose values fall somewhere with k, which counts cannot do."""
    found = []
    for benchmark in BENCHMARKS:
        for model in published.models:
            series = published.series(benchmark, model)
            if any(later < earlier for earlier, later in pairwise(series)):
                found.append((benchmark, model))
    return found


def size_notes(published: Published) -> dict[str, str]:
    """Footnotes to Table 1: rows whose printed columns do not go together, by benchmark.

    Each is computed from the printed figures; what does not hold is not said.
    """
    notes: dict[str, str] = {}
    for name, row in published.sizes.items():
        ratio, printed = row["triples"] / row["predicates"], row["triples_per_predicate"]
        if abs(ratio - float(printed)) > 0.01:
            whole = round(row["triples"] / float(printed))
            notes[name] = (
                f"{row['triples']}/{row['predicates']} is {ratio:.2f}; {printed} would need "
                f"{whole} predicates, so that combinations are counted and a digit is missing"
            )
        elif f"{ratio:.{len(printed.partition('.')[2])}f}" != printed:
            notes[name] = f"{row['triples']}/{row['predicates']} is {ratio:.3f}: rounded wrongly"
    if published.sizes["hierarchy"]["entities"] == published.sizes["hierarchy"]["triples"]:
        notes["hierarchy"] = "as many entities as triples: a slip"
    paths, entity = published.sizes["paths"], published.sizes["entity_centric"]
    if paths["triples"] == 2 * entity["entities"]:
        notes["entity_centric"] = (
            f"{entity['entities']} entities are half of the {paths['triples']} triples of paths: "
            "a slip of the row?"
        )
    return notes
