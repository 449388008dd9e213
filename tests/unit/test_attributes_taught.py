"""Metrics on examples whose facts were taught, in part, or not."""

import polars as pl

from kgprobe import schema
from kgprobe.tables import attributes_taught as at
from kgprobe.tables import table
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
