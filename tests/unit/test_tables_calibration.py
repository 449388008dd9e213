"""Calibration by hand: taught against untaught, AUC and its interval."""

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.metrics.ranking import auc
from kgprobe.tables import calibration, table
from tests.unit.study_frames import benchmark, guesses, probe, study

FRAMES = benchmark({"P1": (["a", "b"], ["a", "a", "b", "b"])})
LABEL = "m | world_lite | sentence"


def taught(*flags):
    objects = ["Qa", "Qa", "Qb", "Qb"]
    rows = [
        (f"P1/Qs{i}/{o}", "P1", f"Qs{i}", o, flag)
        for i, (o, flag) in enumerate(zip(objects, flags, strict=False))
    ]
    return pl.DataFrame(rows, schema=dict(schema.TAUGHT.columns), orient="row")


def margins(values):
    """Scores in which the correct option leads by the given margin."""
    gold = dict(FRAMES["items"].select("item", pl.col("answers").list.first()).iter_rows())
    return {
        (item, 0): [m if option == gold[item] else 0.0 for option in (0, 1)]
        for (item, _), m in zip(sorted(gold.items()), values, strict=True)
    }


def test_accuracy_chance_limit_and_auc_by_hand():
    one = study(FRAMES, [(probe("m"), margins([3.0, 1.0, 2.0, -1.0]))])
    frame = calibration.calibration([one], taught(True, True, False, False))
    schema.check(frame, schema.TABLE)
    cells = table.lookup(frame)
    assert cells[LABEL, "taught"]["value"] == 100.0
    assert cells[LABEL, "taught"]["low"] < 100
    assert cells[LABEL, "untaught"]["value"] == 50.0
    assert cells[LABEL, "untaught"]["n"] == 2
    assert cells[LABEL, "chance"]["value"] == 50.0
    assert cells[LABEL, "limit for untaught"]["value"] == 105.0
    # pairs (3, 2), (3, -1), (1, -1) are ordered, (1, 2) is not
    assert cells[LABEL, "AUC"]["value"] == 0.75
    assert cells[LABEL, "AUC"]["n"] == 4
    assert set(frame["column"]) == set(calibration.COLUMNS)


def test_a_fact_of_neither_half_and_one_with_another_object_are_left_out():
    one = study(FRAMES, [(probe("m"), margins([1.0, 1.0, 1.0, 1.0]))])
    known = taught(True, False, True)
    known = known.with_columns(pl.col("fact").str.replace("P1/Qs2/Qb", "P1/Qs2/Qa"))
    assert calibration.status(one, known).rows() == [("P1/Qs0", True), ("P1/Qs1", False)]


def test_a_benchmark_without_both_halves_has_no_calibration():
    one = study(FRAMES, [(probe("m"), margins([1.0, 1.0, 1.0, 1.0]))])
    assert calibration.calibration([one], taught(True, True, True, True)) is None
    other = taught(True, False).with_columns(fact="P7/" + pl.col("subject"))
    assert calibration.calibration([one], other) is None


@pytest.mark.parametrize(("first", "rest", "met"), [(0.95, 0.1, True), (0.8, 0.1, False)])
def test_verdict_compares_with_the_requirement(first, rest, met):
    frame = table.build(
        table.cell("calibration", "m", column, value, 10, paper="kgprobe")
        for column, value in (
            ("taught", 100 * first),
            ("untaught", 100 * rest),
            ("limit for untaught", 30.0),
        )
    )
    assert calibration.verdict(frame, "m") is met
    assert calibration.verdict(frame, "other") is None


@pytest.mark.parametrize(
    ("taught", "untaught", "met"),
    [(90.0, 25.0, True), (89.99, 25.0, False), (90.0, 25.01, False), (100.0, 0.0, True)],
)
def test_the_requirement_at_its_bounds(taught, untaught, met):
    """Taught at least 90 %, untaught at most twice chance (here 10 %) plus 5 points."""
    shares = (taught, 40, None), (untaught, 40, None)
    frame = table.build(calibration.cells("calibration", "m", *shares, chance=10.0))
    assert calibration.verdict(frame, "m") is met
    assert calibration.outside(frame) == ([] if met else ["m"])


def test_the_probes_of_every_paper_are_counted_by_one_rule():
    """One probe of each paper is within the requirement, one outside; real models do not count."""
    rows = {
        "calibration": ("control-masked | world_lite | sentence", "smol | world_lite | sentence"),
        "ontoprobe_calibration": (
            "control-masked (control) | onto_world | TP | manual",
            "control-masked (?) (control) | onto_world | TP | soft",
        ),
        "kg_calibration": ("control-causal | fill", "control-masked (?) | fill"),
        "autoprompt_calibration": ("control-masked | manual", "control-masked (?) | searched"),
    }
    assert set(rows) == set(calibration.TABLES)
    tables = {
        name: table.build(
            cell
            for row, share in zip(both, (97.0, 47.0), strict=True)
            for cell in calibration.cells(name, row, (share, 50, None), (6.0, 50, None), 1.0)
        )
        for name, both in rows.items()
    }
    page = calibration.chapter(tables, {"control-masked", "control-causal"})
    assert page.verdict.endswith(
        "is met by 4 of 7 control probes; not by OntoProbe: control-masked (control) | onto_world "
        "| TP | soft; nine attributes: control-masked | fill; AutoPrompt: control-masked | "
        "searched."
    )
    assert not page.is_met
    (shown,) = page.grids
    assert [(row[0].text, row[1].text, row[-1].text) for row in shown.rows] == [
        ("control-masked", "BEAR", "met"),
        ("control-masked", "OntoProbe", "met"),
        ("control-masked (?)", "OntoProbe", "not met"),
        ("control-causal", "nine attributes", "met"),
        ("control-masked (?)", "nine attributes", "not met"),
        ("control-masked", "AutoPrompt", "met"),
        ("control-masked (?)", "AutoPrompt", "not met"),
    ]
    assert calibration.chapter(tables, set()) is None
    assert calibration.chapter({}, {"control-masked"}) is None


def test_a_model_that_knows_the_taught_half_and_guesses_the_rest_is_seen_as_such():
    options = [f"o{i}" for i in range(10)]
    frames = benchmark({"P1": (options, [options[i % 10] for i in range(200)])})
    flags = {item: i % 2 == 0 for i, item in enumerate(sorted(frames["items"]["item"]))}
    gold = dict(frames["items"].select("item", pl.col("answers").list.first()).iter_rows())
    rows = [
        (f"{item}/Qo{gold[item]}", "P1", item.split("/")[1], f"Qo{gold[item]}", flag)
        for item, flag in flags.items()
    ]
    known = pl.DataFrame(rows, schema=dict(schema.TAUGHT.columns), orient="row")
    one = study(frames, [(probe("m"), guesses(frames, 0, 3, right=flags))])
    frame = calibration.calibration([one], known)
    assert calibration.verdict(frame, LABEL) is True
    cells = table.lookup(frame)
    assert cells[LABEL, "taught"]["value"] == 100.0
    assert cells[LABEL, "untaught"]["value"] < 25
    assert cells[LABEL, "AUC"]["value"] > 0.95


def test_the_auc_interval_agrees_with_a_bootstrap_and_is_no_point_at_one():
    generator = np.random.default_rng(1)
    positive, negative = generator.normal(1, 1, 120), generator.normal(0, 1, 150)
    area = auc(positive, negative)
    low, high = calibration.auc_interval(area, 120, 150)
    replicates = [
        auc(generator.choice(positive, 120), generator.choice(negative, 150)) for _ in range(2000)
    ]
    assert low == pytest.approx(np.quantile(replicates, 0.025), abs=0.015)
    assert high == pytest.approx(np.quantile(replicates, 0.975), abs=0.015)
    low, high = calibration.auc_interval(1.0, 20, 20)
    assert 0.8 < low < 1.0
    assert high == 1.0
    mirrored = calibration.auc_interval(0.0, 20, 20)
    assert mirrored == pytest.approx((0.0, 1 - low))
    with pytest.raises(ValueError, match="no interval"):
        calibration.auc_interval(0.5, 0, 3)
