"""Metrics on examples whose facts were taught, in part, or not."""

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables.attributes import numbers as sc
from tests.unit import attribute_answers

#: facts of the run that were taught: the first pair whole, of the second one direction, one P19
FACTS = {
    "P26/Q1/Q2": True,
    "P26/Q2/Q1": True,
    "P26/Q3/Q4": True,
    "P26/Q4/Q3": False,
    "P19/Q1/Q9": True,
    "P19/Q3/Q9": False,
}
TAUGHT = pl.DataFrame(
    [(fact, *fact.split("/"), told) for fact, told in FACTS.items()],
    schema=dict(schema.TAUGHT.columns),
    orient="row",
)


def test_an_example_is_taught_whole_in_part_or_not():
    found = sc.status(attribute_answers.study(), TAUGHT)
    by_example = dict(found.select("example", "status").unique().rows())
    assert {e: s for e, s in by_example.items() if s != "held-out"} == {
        "symmetry/P26/Q1/Q2": "trained-on",
        "symmetry/P26/Q3/Q4": "trained-on in part",
        "asymmetry/P19/Q1/Q9": "trained-on",
    }
    # the reversed probe is no fact
    assert found.filter(~pl.col("stored"))["taught"].to_list() == [False, False]


def test_metrics_stand_by_status():
    study = attribute_answers.study()
    numbers = list(sc.by_status(study, _told(study), sc.status(study, TAUGHT)))
    found = {(n.benchmark, n.model, n.metric, n.slice): n for n in numbers}
    assert len(found) == len(numbers)
    value = {s: found["symmetry", "large", "value", s] for s in (sc.TAUGHT, sc.PART, sc.UNTAUGHT)}
    # alphas at 1, best prompt: (1, 1) taught, (1, 0) in part, (0, 1) and (0, 0) untaught
    assert value["trained-on"].value == 100
    assert (value["trained-on in part"].value, value["trained-on in part"].denominator) == (0, 1)
    assert value["held-out"].denominator == 1
    right = found["symmetry", "large", "triples right", "trained-on"]
    assert (right.value, right.n) == (100, 3)
    assert found["symmetry", "large", "triples right", "held-out"].value == 20
    small = found["symmetry", "small", "value", "trained-on"]
    assert (small.value, small.denominator) == (None, 0)  # undefined is no value
    assert found["asymmetry", "large", "value", "trained-on"].n == 1
    assert {n.model for n in numbers} == {"large", "small"}


def _told(study):
    return study.alphas().filter(pl.col("method") != "baseline")


def test_without_a_taught_triple_there_are_no_numbers():
    study = attribute_answers.study()
    known = sc.status(study, TAUGHT.with_columns(taught=pl.lit(False)))
    assert list(sc.by_status(study, _told(study), known)) == []
    assert list(sc.halves(study, study.alphas(), known)) == []


def test_both_halves_of_a_control_model_stand_under_the_requirement_of_all_papers():
    study = attribute_answers.study()
    known = sc.status(study, TAUGHT)
    numbers = list(sc.halves(study, study.alphas(), known))
    # the model from elsewhere is no probe that could fail
    assert {(n.benchmark, n.model, n.method) for n in numbers} == {("", "small", "fill")}
    found = {n.metric: n for n in numbers}
    # distinct stored triples: of the two of P19 one is taught, of the eight of P26 three, P21 none
    assert (found["trained-on"].value, found["trained-on"].n) == (0, 4)
    assert (found["held-out"].value, found["held-out"].n) == (0, 8)
    asked = known.filter("stored", ~pl.col("taught")).unique("fact")
    base = study.guesses.filter(model="random", k=1, kind="exact", gold="own")
    item = pl.format("{}#{}", "example", "position")
    guess = base.with_columns(item=item).join(asked, on="item")
    chance = 100 * guess["alpha"].mean()
    assert chance > 0
    assert found["chance"].value == pytest.approx(chance)
    assert found["limit for held-out"].value == pytest.approx(2 * chance + 5)
    assert found["valid"].value == 0
    assert "AUC" not in found
