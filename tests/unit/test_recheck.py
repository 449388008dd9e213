"""Modes that are not exact: near ties are found, scored again, and what changed is told."""

import dataclasses

import numpy as np
import polars as pl
import pytest

from kgprobe.probes.jobs import score
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.scoring.sentence import recheck
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS
from tests.unit.test_answers import LABELS, Bar
from tests.unit.tiny_models import tiny


def columns(*sums: tuple[float, ...]) -> dict:
    """Columns of questions q0, q1, ... with the given sums of their options."""
    flat = np.array([s for own in sums for s in own])
    return {
        "item": [f"q{i}" for i, own in enumerate(sums) for _ in own],
        "template": np.array([0 for own in sums for _ in own]),
        "candidate": np.array([c for own in sums for c in range(len(own))]),
        "sum": flat,
        "answer_sum": flat / 2,
        "continuation_sum": np.full(len(flat), np.nan),
    }


class Exact:
    """Exact sums by question; remembers what it was asked."""

    def __init__(self, **sums: tuple[float, ...]) -> None:
        self.sums, self.asked = sums, []

    def __call__(self, questions):
        self.asked += [name for name, _ in questions]
        found = {}
        for name, template in questions:
            own = np.array(self.sums[name])
            nothing = np.full(len(own), np.nan)
            found[name, template] = {"sum": own, "answer_sum": own / 2, "continuation_sum": nothing}
        return found


def test_near_ties_alone_are_scored_again_and_changes_are_counted():
    exact = Exact(q0=(-1.0, -9.0), q1=(-3.0, -2.9))
    before = columns((-1.0, -9.0), (-2.9, -3.0), (-1.0, -7.0), (-4.0,))
    found, record = recheck.run(before, exact, margin=0.5, calibration=1)
    assert exact.asked == ["q0", "q1"]
    assert found["sum"].tolist() == [-1.0, -9.0, -3.0, -2.9, -1.0, -7.0, -4.0]
    assert found["answer_sum"][2] == -1.5
    assert before["sum"][2] == -2.9, "what was given stays as it is"
    assert (record["questions"], record["rechecked"], record["changed_answers"]) == (4, 2, 1)
    assert record["largest_difference"] == pytest.approx(0.1)


def test_the_margin_grows_with_what_the_calibration_shows():
    # in the first question one option moved by two nats against the other
    exact = Exact(q0=(-1.0, -9.0), q1=(-1.0, -2.5))
    _, record = recheck.run(columns((-1.0, -7.0), (-1.0, -2.5)), exact, calibration=1)
    assert record["margin"] == pytest.approx(2.0)
    assert exact.asked == ["q0", "q1"]


def test_a_shift_of_all_options_alike_is_no_reason_to_doubt():
    exact = Exact(q0=(-1.0, -9.0), q1=(0.0, 0.0))
    _, record = recheck.run(columns((-4.0, -12.0), (-1.0, -2.5)), exact, calibration=1)
    assert record["margin"] == recheck.MARGIN
    assert exact.asked == ["q0"]


@pytest.fixture(scope="module")
def frames():
    items = [
        (f"P36/Q{i}", "P36", "fact", "P36", f"country {i}", f"Q{i}", "s", [0], i, "{}")
        for i in range(8)
    ]
    candidates = [("s", i, f"Q{i}", label) for i, label in enumerate(LABELS)]
    prompts = [
        (f"P36/{i}", "P36", i, text, "manual")
        for i, text in enumerate(["The capital of [X] is [Y].", "[Y] lies in [X]."])
    ]
    return tuple(
        pl.DataFrame(rows, schema=dict(contract.columns), orient="row")
        for rows, contract in ((items, ITEMS), (candidates, CANDIDATES), (prompts, PROMPTS))
    )


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("llama", "bfloat16"), ("t5", "bfloat16"), ("t5", "float16"), ("bert", "float16"),
     ("bert", "float32-compiled")],
)  # fmt: skip
def test_answers_of_other_modes_are_the_exact_ones(name, dtype, frames, tmp_path, monkeypatch):
    loaded = tiny(name, bos="forced") if name == "llama" else tiny(name)
    loaded.model.save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    exact = ModelSpec(name, loaded.spec.kind, f"folder:{tmp_path}", bos=loaded.spec.bos)
    monkeypatch.setattr(recheck.run, "__defaults__", (recheck.MARGIN, 2))
    sure, _ = score.score_frame(exact, *frames, "sentence", Bar)
    fast, record = score.score_frame(
        dataclasses.replace(exact, dtype=dtype), *frames, "sentence", Bar
    )
    assert record["dtype"] == dtype
    assert record["recheck"]["questions"] == 16
    assert record["recheck"]["rechecked"] >= 2
    key = ["item", "template"]
    best = [
        f.sort(*key, "sum").group_by(key, maintain_order=True).last()["candidate"].to_list()
        for f in (sure, fast)
    ]
    assert best[0] == best[1]


def test_the_exact_mode_is_left_alone(frames, tmp_path):
    loaded = tiny("bert")
    loaded.model.save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    spec = ModelSpec("b", "masked", f"folder:{tmp_path}")
    assert "recheck" not in score.score_frame(spec, *frames, "sentence", Bar)[1]
