"""How far scores are from float32: differences and best options, counted by hand; marks."""

import numpy as np
import pytest

from kgprobe import schema
from kgprobe.probes.scoring.sentence import agreement
from kgprobe.tables.report import marks
from kgprobe.tables.results import frame
from tests.unit.study_frames import benchmark, guesses, scores
from tests.unit.test_recheck import columns

FRAMES = benchmark({"P36": (["a", "b", "c"], ["a", "b", "c"]), "P1": (["a", "b"], ["a", "b"])})


def exact(*sums):
    return {(f"q{i}", 0): {"sum": np.array(own)} for i, own in enumerate(sums)}


def test_differences_and_best_options_are_those_counted_by_hand():
    found = agreement.measured(
        columns((-1.0, -9.0), (-3.0, -2.5), (-4.0, -5.0)),
        exact((-1.5, -9.0), (-3.0, -3.5), (-4.0, -4.0)),
        is_same=False,
    )
    assert (found["questions"], found["sentences"]) == (3, 6)
    assert found["largest"] == 1.0
    assert found["mean"] == pytest.approx((0.5 + 0 + 0 + 1.0 + 0 + 1.0) / 6)
    # of the second another option is best; of the third either is
    assert found["equal_best"] == pytest.approx(2 / 3)
    assert found["agrees"] is False
    assert "6 sentences of 3 questions are off by 0.42 nat, at most 1; 66.7%" in agreement.told(
        found, "m"
    )


def test_the_same_weights_and_arithmetic_must_give_the_same_numbers():
    given = columns((-1.0, -9.0)), exact((-1.1, -9.0))
    assert agreement.measured(*given, is_same=False)["agrees"] is True
    assert agreement.measured(*given, is_same=True)["agrees"] is False
    near = columns((-1.0, -9.0)), exact((-1.004, -9.0))
    assert agreement.measured(*near, is_same=True)["agrees"] is True
    with pytest.raises(ValueError, match="agreement of no questions"):
        agreement.measured(columns((-1.0, -2.0)), {}, is_same=True)


def test_questions_are_spread_over_all_of_them():
    asked = columns(*[(-1.0, -2.0)] * 10)
    assert agreement.spaced(asked, 3) == [("q0", 0), ("q4", 0), ("q9", 0)]
    assert len(agreement.spaced(asked, 99)) == 10


def test_a_model_that_does_not_agree_is_marked_at_its_numbers(tmp_path):
    own = {"largest": 1.0, "mean": 0.1, "equal_best": 1.0}
    records = {
        "near": {"agreement": {**own, "agrees": True}},
        "far": {"agreement": {**own, "agrees": False}},
        "mixed": {"asked_apart": [records_of(own, True), records_of(own, False)]},
        "plain": {},
    }
    paths = [tmp_path / f"{name}.parquet" for name in records]
    for path in paths:
        schema.write(
            scores(guesses(FRAMES, 0.7, 0)), schema.SCORES, path, {"model": records[path.stem]}
        )
    made = marks.numbers([{"model": name} for name in records], paths)
    assert {(n.metric, n.model): n.value for n in made} == {
        ("agrees", "near"): 1, ("agrees", "far"): 0, ("agrees", "mixed"): 0,
    }  # fmt: skip
    sign = marks.signs(frame("bear", made))
    row = {"paper": "bear", "benchmark": "x", "group": "", "prompt": "templates", "method": "m"}
    assert [sign({**row, "model": name}) for name in records] == ["", " (≠)", " (≠)", ""]
    assert marks.notes(["far (≠)"]) == [marks.DEPARTS_NOTE]


def records_of(own: dict, agrees: bool) -> dict:
    return {"agreement": {**own, "agrees": agrees}}
