"""Metrics on examples whose facts were taught, in part, or not."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables import attributes_taught as at
from kgprobe.tables import calibration, table
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
    found = at.status(attribute_answers.study(), TAUGHT)
    by_example = dict(found.select("example", "status").unique().rows())
    assert {e: s for e, s in by_example.items() if s != "untaught"} == {
        "symmetry/P26/Q1/Q2": "taught",
        "symmetry/P26/Q3/Q4": "taught in part",
        "asymmetry/P19/Q1/Q9": "taught",
    }
    # the reversed probe is no fact
    assert found.filter(~pl.col("stored"))["taught"].to_list() == [False, False]


def test_metrics_stand_by_status():
    study = attribute_answers.study()
    made = at.calibration(study, study.alphas(), TAUGHT)
    schema.check(made, schema.TABLE)
    cells = table.lookup(made)
    row = "symmetry | large | fill"
    # alphas at 1, best prompt: (1, 1) taught, (1, 0) in part, (0, 1) and (0, 0) untaught
    assert cells[row, "taught"]["value"] == 100
    assert cells[row, "taught in part"]["value"] == 0
    assert cells[row, "taught in part, denominator"]["value"] == 1
    assert cells[row, "untaught, denominator"]["value"] == 1
    right = cells[row, "triples taught, right"]
    assert (right["value"], right["n"]) == (100, 3)
    assert cells[row, "triples untaught, right"]["value"] == 20
    assert ("symmetry | small | fill", "taught") not in cells  # undefined is no value
    assert cells["symmetry | small | fill", "taught, denominator"]["value"] == 0
    assert cells["asymmetry | large | fill", "taught"]["n"] == 1
    assert not any("baseline" in row for row, _ in cells)


def test_without_a_taught_triple_there_is_no_table():
    study = attribute_answers.study()
    none = TAUGHT.with_columns(taught=pl.lit(False))
    assert at.calibration(study, study.alphas(), none) is None


def test_both_halves_of_a_control_model_stand_under_the_requirement_of_all_papers():
    study = attribute_answers.study()
    made = at.halves(study, study.alphas(), TAUGHT)
    schema.check(made, schema.TABLE)
    cells = {(r, c): (v, n) for r, c, v, n in made.select("row", "column", "value", "n").rows()}
    # the model from elsewhere is no probe that could fail
    assert {row for row, _ in cells} == {"small | fill"}
    # distinct stored triples: of the two of P19 one is taught, of the eight of P26 three, P21 none
    assert cells["small | fill", "taught"] == (0, 4)
    assert cells["small | fill", "untaught"] == (0, 8)
    known = at.status(study, TAUGHT).filter("stored")
    asked = known.filter(~pl.col("taught")).unique("fact")
    base = study.baselines.filter(model="random object", k=1, kind="exact", gold="own")
    item = pl.format("{}#{}", "example", "position")
    guess = base.filter(pooling="best").with_columns(item=item).join(asked, on="item")
    chance = 100 * guess["alpha"].mean()
    assert chance > 0
    assert cells["small | fill", "chance"][0] == pytest.approx(chance)
    assert cells["small | fill", "limit for untaught"][0] == pytest.approx(2 * chance + 5)
    assert calibration.outside(made) == ["small | fill"]
    signed = at.signed_study(study, made)
    assert {a.probe.model for a in signed.answers} == {"large", "small (?)"}
    # and nothing else of the answers is lost
    said = [replace(a, ways={"exact": 3}, verbose=(1, 4)) for a in study.answers]
    kept = at.signed_study(replace(study, answers=said), made).answers
    assert [(a.ways, a.verbose) for a in kept] == [({"exact": 3}, (1, 4))] * len(said) != []
    # what is made of it has the mark at the model, wherever the model stands
    table_ = at.calibration(signed, signed.alphas(), TAUGHT)
    assert any("| small (?) |" in row for row in table_["row"])
    assert not any("| small |" in row for row in table_["row"])
    none = TAUGHT.with_columns(taught=pl.lit(False))
    assert at.halves(study, study.alphas(), none) is None
