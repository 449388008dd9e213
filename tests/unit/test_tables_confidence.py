"""Numbers of confidence and of templates, against loops over the same answers."""

import itertools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t

from kgprobe.metrics.aggregations import folds
from kgprobe.metrics.intervals import resamples, wilson
from kgprobe.metrics.tests import detectable
from kgprobe.sampling import hash_key
from kgprobe.tables import confidence, consistency, slices
from kgprobe.tables.answers import judge
from kgprobe.tables.bear import figures, views
from kgprobe.tables.bear.make import estimates as bear_numbers
from kgprobe.tables.results import Number
from kgprobe.tables.results import frame as results_frame
from kgprobe.tables.scored import Scored, numbers_of
from kgprobe.tables.study import BaselineAnswers, Study
from tests.unit.study_frames import benchmark, guesses, number, results, scores
from tests.unit.study_frames import drawn as rows_of
from tests.unit.test_confidence_all import compare, hit, literal, softmax
from tests.unit.test_tables_aggregations import read

OPTIONS = ["a", "b", "c"]
FRAMES = benchmark(
    {"P1": (OPTIONS, [OPTIONS[i % 3] for i in range(20)]), "P2": (["x", "y"], ["x", "y"] * 3)}
)
SEED = 4
TEMPLATES = 3
ANSWERS = guesses(FRAMES, 0.5, 9, templates=TEMPLATES)
GOLD = dict(FRAMES["items"].select("item", pl.col("answers").list.first()).iter_rows())


READ = read(answers=ANSWERS, frames=FRAMES, seed=SEED)
EVERY = results(READ)
FOUND = EVERY.filter(model="m")


def right(key) -> float:
    return hit(ANSWERS[key], {GOLD[key[0]]})


def test_every_number_is_that_of_a_loop():
    half = {}
    for relation, n in (("P1", 20), ("P2", 6)):
        subjects = [f"Qs{i}" for i in range(n)]
        places = folds(subjects, SEED, f"{relation} abstention", 2)
        half |= {f"{relation}/{s}": int(f) for s, f in zip(subjects, places, strict=True)}
    wanted = literal(ANSWERS, {item: {gold} for item, gold in GOLD.items()}, half)
    assert 0 < wanted["answered"] < 100
    compare(FOUND, wanted)
    for name in ("K", "Brier", "ECE"):
        row = number(FOUND, name)
        assert row["low"] < row["value"] < row["high"]
        assert row["n"] == 26
        other = number(FOUND, name, aggregation="prior")["value"]
        assert other != pytest.approx(row["value"])
    assert number(FOUND, "answered")["n"] == sum(half.values())


def test_bins_of_confidence_are_those_of_a_loop():
    cells = {}
    for key, values in ANSWERS.items():
        sure = max(softmax(values))
        cells.setdefault(math.ceil(sure * 10) - 1, []).append((sure, right(key)))
    assert len(cells) > 3
    for at, own in cells.items():
        hits = number(FOUND, "hits at this confidence", bin=at / 10)["value"]
        sure = number(FOUND, "mean confidence", bin=at / 10)["value"]
        assert hits == pytest.approx(100 * sum(r for _, r in own) / len(own))
        assert sure == pytest.approx(100 * sum(s for s, _ in own) / len(own))


def test_the_interval_is_not_a_point_if_all_answers_are_alike():
    """All are wrong with the same probabilities, but a few others may not be."""
    frames = benchmark({"P1": (["a", "b"], ["a", "b"] * 20)})
    gold = dict(frames["items"].select("item", pl.col("answers").list.first()).iter_rows())
    answers = {(i, t): [-float(o == g) for o in (0, 1)] for i, g in gold.items() for t in range(3)}
    every = results(read(answers=answers, frames=frames, seed=SEED)).filter(model="m")
    sure = 1 / (1 + math.exp(-1))
    # Wilson's upper bound of none of 40, and of none of 20
    of_all, of_half = (1.959964**2 / (n + 1.959964**2) for n in (40, 20))
    for name, value, most, others, more in (
        ("Brier", 2 * sure**2, 2, of_all, {}),
        ("ECE", 100 * sure, 100, of_all, {}),
        ("right less wrong", 0, 100, of_half, {}),
        ("right less wrong", -100, 100, of_half, {"choice": "all"}),
    ):
        row, least = number(every, name, **more), -100 if name == "right less wrong" else 0
        assert row["value"] == pytest.approx(value)
        assert (row["low"], row["high"], row["interval"]) == (
            pytest.approx(value - others * (value - least)),
            pytest.approx(value + others * (most - value)),
            "wilson",
        )


@pytest.mark.parametrize("templates", [1, 3])
def test_the_interval_of_the_calibration_error_holds_it_and_nought_where_all_agrees(templates):
    """Confidence and hits agree in each bin but for noise, so that the error is only bias."""
    generator, misses = np.random.default_rng(1), 0
    names = [f"i{n:02}" for n in range(30)]
    rows = pl.DataFrame({"item": names, "relation": "P1", "subject_id": "", "subject": names})
    asked = Study(**{**FRAMES, "items": rows}, seed=SEED)
    items = [name for name in names for _ in range(templates)]
    for _ in range(20):
        sure = np.repeat(0.3 + 0.7 * generator.beta(3, 1.5, 30), templates)
        answers = pl.DataFrame({
            "item": items, "template": [*range(templates)] * 30, "relation": "P1",
            "confidence": sure, "hit": (generator.random(len(sure)) < sure).astype(float),
        })  # fmt: skip
        (error,) = [
            n for n in confidence._calibration(asked, Number(), answers) if n.metric == "ECE"
        ]
        assert error.interval.low <= error.value <= error.interval.high
        misses += error.interval.low > 0
    assert misses <= 3


def test_the_items_of_a_subject_are_drawn_together_and_counted_once():
    subjects = [*"aaabbcddde"]
    hits = pl.Series([1.0, 1, 0.5, 0, 0, 1, 1, 1, 1, 0])
    names = [f"i{n}" for n in range(10)]
    rows = pl.DataFrame({"item": names, "relation": "P1", "subject_id": subjects, "subject": "x"})
    frame = pl.DataFrame({"item": names, "relation": "P1", "hit": hits, "templates": 1})
    asked = Study(**{**FRAMES, "items": rows}, seed=SEED)
    found = asked.estimate(frame, "hit", is_proportion=True)
    weights = resamples(5, 2000, hash_key(SEED, "bootstrap", "P1"))
    sums, sizes = np.array([2.5, 0, 1, 3, 0]), np.array([3, 2, 1, 3, 1])
    tail = norm.cdf(-t.ppf(0.975, 4))
    bounds = np.quantile(100 * (weights @ sums) / (weights @ sizes), [tail, 1 - tail])
    assert (found["value"], found["n"]) == (pytest.approx(65), 5)
    assert found["interval"][:2] == pytest.approx(tuple(bounds))
    part = frame.with_columns(weight=pl.Series([1.0, 1, 1, 0, 0, 0, 1, 1, 1, 0]))
    assert asked.estimate(part, "hit", weight="weight")["n"] == 2
    answers = frame.with_columns(template=0, confidence=pl.lit(0.9))
    (error,) = [n for n in confidence._calibration(asked, Number(), answers) if n.metric == "ECE"]
    assert error.n == 5
    compared = frame.with_columns(other=pl.Series([0.0, 0, 0, 0, 0, 0, 1, 0, 0, 1]))
    values = {
        n.metric: n for n in slices.differences(asked, [(Number(), compared)], [slices.EVERY_ITEM])
    }
    gaps = np.array([2.5, 0, 1, 2, -1])
    flips = np.abs(np.array(list(itertools.product([1, -1], repeat=5))) @ gaps)
    p = (flips > 4.5).mean() + (flips == 4.5).mean() / 2
    assert values["p after Holm"].value == pytest.approx(p)
    error = np.sqrt((gaps**2).sum()) / 10
    assert values["detectable difference"].value == pytest.approx(100 * detectable(error))
    assert (values["accuracy"].value, values["accuracy"].n) == (pytest.approx(45), 5)
    # a subject of two relations is drawn in each
    two = rows.with_columns(relation=pl.Series([*["P1"] * 5, *["P2"] * 5]), subject_id=pl.lit("a"))
    other = Study(**{**FRAMES, "items": two}, seed=SEED)
    both = frame.with_columns(relation=two["relation"])
    assert other.estimate(both, "hit")["n"] == 2


def test_every_number_over_items_counts_subjects():
    """Two items for each subject of P1 (10 subjects), one for each of P2 (6)."""
    pairs = pl.Series([f"Q{i // 2}" for i in range(20)] + [f"Q{i}" for i in range(6)])
    items = READ.items.sort("relation", "row").with_columns(subject_id=pairs)
    low = READ.probes[0][1].filter(template=0)
    study = replace(READ, items=items, baselines=[BaselineAnswers(0, "the subject", low)])
    found = results_frame("bear", bear_numbers([replace(study, numbers=[])]))
    of_items = found.filter(~pl.col("metric").is_in(["parameters", "detectable difference"]))
    of_items = of_items.filter(pl.col("metric") != "p after Holm", pl.col("n") > 0)
    whole = of_items.filter(group="", slice="", weighting="")
    assert set(whole["n"]) == {16}
    assert {"random", "majority", "m"} == set(whole["model"])
    templates = whole.filter(pl.col("template") != "", without="")
    assert templates.height == TEMPLATES
    assert set(templates["interval"]) == {"cluster bootstrap"}
    assert set(consistency.METRICS) <= set(whole["metric"])
    of_relations = of_items.filter(pl.col("group") != "")
    assert set(of_relations.select("group", "n").rows()) == {("P1", 10), ("P2", 6)}


def test_numbers_of_scores_count_subjects():
    """Two items for each of 10 subjects: half of the subjects judge whether to answer."""
    pairs = pl.Series([f"Q{i // 2}" for i in range(20)] + [f"Q{i}" for i in range(6)])
    items = READ.items.sort("relation", "row").with_columns(subject_id=pairs)
    study = replace(READ, items=items.filter(relation="P1"))
    found = scores(ANSWERS).filter(pl.col("item").str.starts_with("P1"))
    own = judge(found, study.items, study.candidates)
    numbers = list(numbers_of(Scored(study.probes[0][0], found, study), own))
    by = {n.metric: n.n for n in numbers if not (n.slice or n.setting)}
    assert by["permuted golds"] == by["permuted golds, expected"] == by["K"] == 10
    assert by["answered"] == by["abstention threshold"] == by["right less wrong"] == 5
    assert 0 < by["accuracy of answered"] <= 5
    # wrong throughout: no subject of 10 differs
    means = items.filter(relation="P1").select("item", "relation", net=pl.lit(-1.0))
    bounds = confidence._between(study, means, "net", -1, 1)["interval"]
    assert bounds.high == pytest.approx(-1 + 2 * wilson(0, 10)[1])


def test_right_under_any_most_and_all_templates_and_the_best_one():
    items = sorted(GOLD)
    rights = {item: [right((item, t)) for t in range(TEMPLATES)] for item in items}
    for name, least in (("any", 1), ("most", 2), ("all", 3)):
        fraction = sum(sum(own) >= least for own in rights.values()) / len(items)
        assert number(FOUND, f"correct in {name}")["value"] == pytest.approx(100 * fraction)
    best = max(sum(own[t] for own in rights.values()) for t in range(TEMPLATES)) / len(items)
    row = number(FOUND, "best template", choice="oracle")
    assert row["value"] == pytest.approx(100 * best)
    assert row["value"] >= number(FOUND)["value"]


def test_tie_probabilities_equal_enumeration():
    hits = np.array([[1.0, 0.5, 0.0, 0.25], [0.0, 0.0, 0.0, 0.0]])
    found = consistency.at_least(hits)
    for row, chances in zip(found, hits, strict=True):
        for least in range(5):
            fraction = sum(
                math.prod(c if said else 1 - c for c, said in zip(chances, outcome, strict=True))
                for outcome in itertools.product((True, False), repeat=4)
                if sum(outcome) >= least
            )
            assert row[least] == pytest.approx(fraction)


def test_confidence_is_in_a_table_and_a_plot():
    table = views.views(FOUND, ["m"])["confidence"].of(FOUND)
    assert [key[-1] for key in table.rows] == ["", "prior"]
    heads = {"pairwise AUC (K of Inside-Out), %", "Brier", "calibration error, %"}
    assert heads <= set(table.heads)
    models = {"m": {"kind": "masked", "source": "hub:m"}}
    drawn = {one.name: one for one in figures.figures(EVERY, models, {})}
    rows = rows_of(drawn["bear_reliability_world_lite"].chart)
    bins = FOUND.filter(metric="mean confidence").filter(aggregation="")
    points = [row for row in rows if "n" in row]
    assert sorted(row["sure"] for row in points) == sorted(bins["value"].to_list()) != []
    assert {row["probe"] for row in points} == {"m"}
    assert [row for row in rows if "n" not in row] == [
        {"sure": 0, "value": 0}, {"sure": 100, "value": 100},
    ]  # fmt: skip
