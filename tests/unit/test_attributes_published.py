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


def test_sizes_means_and_falling_series_match_the_note():
    fits = {b: row["sizes up to 1,500 that fit all"] for b, row in ARITHMETIC.items()}
    assert {b: sizes for b, sizes in fits.items() if sizes != "none"} == {
        "asymmetry": "1000", "entity_centric": "1000", "bias": "732, 1464",
    }  # fmt: skip
    six = {"hierarchy": 16, "composite": 17, "bidirectional": 42, "ambiguous": 52, "symmetry": 78,
           "paths": 117}  # fmt: skip
    assert {b: ARITHMETIC[b]["smallest denominators, geometric mean"] for b in six} == six
    # the smallest fractions that fit
    assert (smallest_fraction(68.18), smallest_fraction(52.94)) == ((15, 22), (9, 17))
    falls = {b: row["falls somewhere with k"] for b, row in ARITHMETIC.items()}
    assert {b: models for b, models in falls.items() if models} == {
        "symmetry": "T5", "bidirectional": "BERT, RoBERTa", "ambiguous": "BERT, RoBERTa",
    }  # fmt: skip


def test_bias_has_732_examples():
    counts = {model: [numerator(v, 732) for v in series("bias", model)] for model in MODELS}
    assert counts == {
        "BERT": [0, 0, 0], "RoBERTa": [0, 6, 33], "T5": [2, 88, 209], "GPT-3": [249, 379, 454],
        "GPT-4": [396],
    }  # fmt: skip


def test_the_mean_of_gpt_4():
    assert sum(PRINTED.scores[b, "GPT-4", 1] for b in ap.NAMES) == pytest.approx(213.94)


def test_the_introduction_s_comparison_of_bert_with_gpt_4_does_not_hold_for_composite():
    at_one = {(b, m): v for (b, m, k), v in PRINTED.scores.items() if k == 1}
    better = {b for b in ap.NAMES if at_one[b, "BERT"] > at_one[b, "GPT-4"]}
    assert better == {"bidirectional", "ambiguous", "paths"}


def test_oddities_of_table_1():
    sizes = PRINTED.sizes
    assert round(50488 / 118, 2) == 427.86
    assert round(50488 / 1118, 2) == 45.16
    assert sizes["composite"]["triples"] % 3
    assert sizes["symmetry"]["triples"] % 2
    assert sizes["bidirectional"]["triples"] % 2
    assert sizes["hierarchy"]["entities"] == sizes["hierarchy"]["triples"] > 3000
    assert sizes["paths"]["triples"] == 2 * sizes["entity_centric"]["entities"]
    assert float(sizes["asymmetry"]["triples_per_predicate"]) == pytest.approx(100, abs=0.1)
    assert sizes["ambiguous"]["triples"] == 2 * 375
    assert sizes["entity_centric"]["triples"] % 20
    notes = {b: row["Table 1"] for b, row in ARITHMETIC.items() if row["Table 1"]}
    odd = {"symmetry", "bidirectional", "composite", "hierarchy", "entity_centric"}
    assert set(notes) == odd
    for name, ratio in (("symmetry", "127.364"), ("bidirectional", "52.405")):
        assert f"{sizes[name]['triples'] / sizes[name]['predicates']:.3f}" == ratio
        assert ratio in notes[name]
    assert "1118 predicates" in notes["composite"]
