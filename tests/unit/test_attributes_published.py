"""The consistency tests of the printed tables: what their arithmetic admits."""

from pathlib import Path

import pytest

from kgprobe.metrics.intervals import wilson
from kgprobe.tables.attributes import published as ap

PRINTED = ap.read(Path(__file__).parents[2] / "resources" / "published")


def test_table_2_has_117_values():
    assert len(PRINTED.scores) == 117
    assert PRINTED.models == ["BERT", "RoBERTa", "T5", "GPT-3", "GPT-4"]
    assert {len(PRINTED.series(b, "GPT-4")) for b in ap.BENCHMARKS} == {1}


@pytest.mark.parametrize("benchmark", ["asymmetry", "entity_centric"])
def test_only_a_thousand_examples_fit_all_thirteen_values(benchmark):
    values = PRINTED.values(benchmark)
    assert len(values) == 13
    assert ap.sizes_that_fit(values, range(1, 1501)) == [1000]


def test_bias_is_out_of_732():
    values = PRINTED.values("bias")
    assert len(values) == 9
    assert ap.sizes_that_fit(values, range(1, 1501)) == [732, 1464]
    counts = {
        model: [ap.numerator(v, 732) for v in PRINTED.series("bias", model)]
        for model in PRINTED.models
    }
    assert counts == {
        "BERT": [0, 0, 0],
        "RoBERTa": [0, 6, 33],
        "T5": [2, 88, 209],
        "GPT-3": [249, 379, 454],
        "GPT-4": [396],
    }


@pytest.mark.parametrize(
    ("benchmark", "nonzero"),
    [
        ("symmetry", 13),
        ("bidirectional", 12),
        ("hierarchy", 8),
        ("paths", 12),
        ("composite", 10),
        ("ambiguous", 10),
    ],
)
def test_no_number_of_examples_fits_the_other_six(benchmark, nonzero):
    values = PRINTED.values(benchmark)
    assert len(values) == nonzero
    assert ap.sizes_that_fit(values, range(1, 1501)) == []


def test_larger_sizes_that_fit_are_sizes_of_nothing_in_table_1():
    found = {b: ap.sizes_that_fit(PRINTED.values(b), range(1501, 6001)) for b in ap.BENCHMARKS}
    assert found["symmetry"] == [5675]
    assert found["bidirectional"] == []
    assert found["paths"] == [5576, 5857]
    assert found["ambiguous"] == [5898, 5981]
    assert (len(found["hierarchy"]), found["hierarchy"][0]) == (13, 4060)
    assert (len(found["composite"]), found["composite"][0]) == (5, 4660)
    six = ("symmetry", "bidirectional", "paths", "ambiguous", "hierarchy", "composite")
    sizes = {n for b in six for n in found[b]}
    printed = {row[c] for row in PRINTED.sizes.values() for c in ("triples", "entities")}
    assert not sizes & printed


def test_five_series_fall_with_k_and_no_others():
    assert set(ap.falling(PRINTED)) == {
        ("symmetry", "T5"),
        ("bidirectional", "BERT"),
        ("bidirectional", "RoBERTa"),
        ("ambiguous", "BERT"),
        ("ambiguous", "RoBERTa"),
    }
    several = [m for m in PRINTED.models if len(PRINTED.series("symmetry", m)) > 1]
    assert len(several) * len(ap.BENCHMARKS) == 36


def test_the_mean_of_gpt_4():
    values = [PRINTED.scores[name, "GPT-4", 1] for name in ap.BENCHMARKS]
    assert sum(values) / len(ap.BENCHMARKS) == pytest.approx(23.77, abs=0.005)
    assert sum(PRINTED.scores[b, "GPT-4", 1] for b in ap.BENCHMARKS) == pytest.approx(213.94)


@pytest.mark.parametrize(
    ("benchmark", "model", "fractions"),
    [
        ("hierarchy", "RoBERTa", [(0, 1), (1, 4), (15, 22)]),
        ("hierarchy", "T5", [(0, 1), (1, 7), (1, 3)]),
        ("hierarchy", "GPT-4", [(2, 7)]),
        ("hierarchy", "GPT-3", [(6, 29), (51, 103), (71, 132)]),
        ("composite", "BERT", [(1, 5), (20, 47), (1, 2)]),
        ("composite", "RoBERTa", [(1, 10), (13, 25), (9, 17)]),
        ("ambiguous", "RoBERTa", [(10, 19), (6, 13), (8, 21)]),
        ("symmetry", "GPT-4", [(55, 144)]),
    ],
)
def test_smallest_fractions(benchmark, model, fractions):
    assert [ap.smallest_fraction(v) for v in PRINTED.series(benchmark, model)] == fractions


def test_geometric_means_of_the_smallest_denominators():
    found = {b: round(ap.mean_smallest(PRINTED.values(b))) for b in ap.BENCHMARKS}
    expected = {
        "hierarchy": 16,
        "composite": 17,
        "bidirectional": 42,
        "ambiguous": 52,
        "symmetry": 78,
        "paths": 117,
    }
    assert {b: found[b] for b in expected} == expected


@pytest.mark.parametrize(
    ("count", "size", "low", "high"),
    [
        (10, 19, 31.71, 72.67),
        (15, 22, 47.32, 83.64),
        (2, 7, 8.22, 64.11),
        (55, 144, 30.66, 46.34),
        (70, 1000, 5.58, 8.75),
        (396, 732, 50.48, 57.68),
    ],
)
def test_intervals_of_the_note(count, size, low, high):
    assert [round(100 * bound, 2) for bound in wilson(count, size)] == [low, high]


def test_the_introduction_s_comparison_of_bert_with_gpt_4_does_not_hold_for_composite():
    better = {
        b for b in ap.BENCHMARKS if PRINTED.scores[b, "BERT", 1] > PRINTED.scores[b, "GPT-4", 1]
    }
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
    notes = ap.size_notes(PRINTED)
    assert set(notes) == {
        "symmetry",
        "bidirectional",
        "composite",
        "hierarchy",
        "entity_centric",
    }
    assert "1118 predicates" in notes["composite"]
    assert "127.364" in notes["symmetry"]
    assert "52.405" in notes["bidirectional"]
