"""Constraints that the printed tables of the attributes paper imply, by plain arithmetic."""

from itertools import pairwise
from math import exp, gcd, log
from pathlib import Path

import pytest

from kgprobe.tables.attributes import published as ap

PRINTED = ap.read(Path(__file__).parents[2] / "resources" / "published")
MODELS = list(dict.fromkeys(model for _, model, _ in PRINTED.scores))
ARITHMETIC = {row["benchmark"]: row for row in PRINTED.arithmetic}


def series(benchmark, model):
    """Return a model's values at 1, 3 and 5 as far as they are printed."""
    return [v for (b, m, _), v in PRINTED.scores.items() if (b, m) == (benchmark, model)]


def values(benchmark):
    """Return the nonzero values over models and k."""
    return [v for model in MODELS for v in series(benchmark, model) if v > 0]


def numerator(value, size):
    """Return the count out of `size` that prints as `value` percent to two decimals, or None."""
    near = round(value * size / 100)
    return near if abs(100 * near / size - value) <= 0.00501 else None


def sizes_that_fit(benchmark, sizes):
    own = values(benchmark)
    return [size for size in sizes if all(numerator(v, size) is not None for v in own)]


def smallest_fraction(value):
    """Return the fraction with the smallest denominator that prints as `value` percent."""
    return next(
        (count, size)
        for size in range(1, 10_001)
        if (count := numerator(value, size)) is not None and gcd(count, size) == 1
    )


def test_table_2_has_117_values():
    assert len(PRINTED.scores) == 117
    assert MODELS == ["BERT", "RoBERTa", "T5", "GPT-3", "GPT-4"]
    assert {len(series(b, "GPT-4")) for b in ap.NAMES} == {1}


@pytest.mark.parametrize("benchmark", ap.NAMES)
def test_stored_facts_follow_from_the_printed_values(benchmark):
    stored, own = ARITHMETIC[benchmark], values(benchmark)
    assert stored["values that are not zero"] == len(own)
    fits = ", ".join(map(str, sizes_that_fit(benchmark, range(1, 1501)))) or "none"
    assert stored["sizes up to 1,500 that fit all"] == fits
    mean = exp(sum(log(smallest_fraction(v)[1]) for v in own) / len(own))
    assert stored["smallest denominators, geometric mean"] == round(mean)
    falling = [m for m in MODELS if any(b < a for a, b in pairwise(series(benchmark, m)))]
    assert (stored["falls somewhere with k"] or "") == ", ".join(falling)
