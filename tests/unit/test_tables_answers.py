"""Judging scores: ties, aggregations, margins, and errors for incomplete scores."""

import math

import polars as pl
import pytest

from kgprobe.tables.answers import judge
from kgprobe.tables.ontoprobe.values import from_scores
from kgprobe.tables.report import grid
from tests.unit.study_frames import benchmark, probe, scores

FRAMES = benchmark({"P1": (["a", "b", "c"], ["a", "b"])})


def judged(first, second, **options):
    frame = scores({("P1/Qs0", 0): first, ("P1/Qs1", 0): second})
    return judge(frame, FRAMES["items"], FRAMES["candidates"], **options)


def test_the_largest_score_wins_and_its_margin_is_to_the_best_wrong_option():
    right, wrong = judged([-1.0, -3.0, -4.0], [-1.0, -2.5, -9.0]).iter_rows(named=True)
    assert (right["hit"], right["first"], right["winner"], right["above"]) == (1.0, 1.0, 0, 0)
    assert right["margin"] == 2.0
    assert (wrong["hit"], wrong["winner"], wrong["above"]) == (0.0, 0, 1)
    assert wrong["margin"] == -1.5
    assert right["options"] == 3


def test_ties_count_as_the_expectation_and_first_takes_the_lowest_index():
    three, two = judged([-2.0, -2.0, -2.0], [-1.0, -1.0, -5.0]).iter_rows(named=True)
    assert three["hit"] == pytest.approx(1 / 3)
    assert (three["first"], three["leaders"], three["tied"]) == (1.0, 3, 2)
    assert (two["hit"], two["first"], two["winner"]) == (0.5, 0.0, 0)
    assert two["margin"] == 0.0


def test_probability_is_the_softmax_and_survives_very_small_likelihoods():
    near, far = judged([math.log(0.2), math.log(0.3), math.log(0.5)], [-2000.0, -2000.0, -2001.0])[
        "probability"
    ]
    assert near == pytest.approx(0.2)
    assert far == pytest.approx(1 / (2 + math.exp(-1)))


def test_an_aggregation_can_change_the_winner():
    frame = scores({("P1/Qs0", 0): [-4.0, -5.0, -6.0], ("P1/Qs1", 0): [-1.0, -2.0, -3.0]})
    frame = frame.with_columns(
        pl.when(pl.col("candidate") == 1).then(5).otherwise(2).cast(pl.Int32).alias("count")
    )
    items, candidates = FRAMES["items"], FRAMES["candidates"]
    assert judge(frame, items, candidates)["winner"].to_list() == [0, 0]
    # per token: -2, -1, -3
    assert judge(frame, items, candidates, "mean")["winner"][0] == 1
    with pytest.raises(ValueError, match="valid: sum, mean"):
        judge(frame, items, candidates, "average")


def test_an_answer_without_a_scored_token_is_no_best_answer():
    """With BOS policy none and the answer first, its only token is unscored: an empty sum is 0."""
    frame = scores({("P1/Qs0", 0): [-4.0, -5.0, -6.0], ("P1/Qs1", 0): [-1.0, -2.0, -3.0]})
    lost = (pl.col("item") == "P1/Qs1") & (pl.col("candidate") == 2)
    frame = frame.with_columns(
        pl.when(lost).then(0.0).otherwise("answer_sum").alias("answer_sum"),
        pl.when(lost).then(0).otherwise("answer_count").cast(pl.Int32).alias("answer_count"),
    )
    items, candidates = FRAMES["items"], FRAMES["candidates"]
    assert judge(frame, items, candidates)["winner"].to_list() == [0, 0]
    message = (
        r"item P1/Qs1, template 0, option 2: no token .* \(1 such rows\), so {} is not defined"
    )
    for aggregation in ("answer_only", "answer_mean", "conditional"):
        with pytest.raises(ValueError, match=message.format(aggregation)):
            judge(frame, items, candidates, aggregation)
    with pytest.raises(ValueError, match=message.format("answer_mean")):
        from_scores(frame, items)


def test_the_best_of_several_correct_options_counts_under_ties():
    several = pl.Series("answers", [[0, 2], [1]], dtype=pl.List(pl.Int32))
    items = FRAMES["items"].with_columns(several)
    frame = scores({("P1/Qs0", 0): [-1.0, -1.0, -1.0], ("P1/Qs1", 0): [-1.0, -2.0, -3.0]})
    tied = judge(frame, items, FRAMES["candidates"]).row(0, named=True)
    assert tied["hit"] == pytest.approx(2 / 3)
    assert (tied["above"], tied["tied"], tied["margin"]) == (0, 1, 0.0)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({("P1/Qs0", 0): [-1.0, -2.0, -3.0]}, "relation P1, item P1/Qs1, template 0 has 0 scored"),
        ({("P1/Qs0", 0): [-1.0, -2.0, -3.0], ("P1/Qs1", 0): [-1.0, -2.0]},
         "item P1/Qs1, template 0 has 2 scored options, its set 'P1' has 3"),
        ({("P1/Qs0", 0): [-1.0, -2.0, -3.0], ("P1/Qs0", 1): [-1.0, -2.0, -3.0],
          ("P1/Qs1", 0): [-1.0, -2.0, -3.0]}, "item P1/Qs1, template 1"),
        ({("P1/Qs0", 0): [-1.0, -2.0, -3.0], ("P1/Qs1", 0): [-1.0, -2.0, -3.0],
          ("P9/Qs1", 0): [-1.0]}, "item 'P9/Qs1' is not in the benchmark"),
    ],
)  # fmt: skip
def test_missing_items_templates_and_options_are_errors(answers, message):
    with pytest.raises(ValueError, match=message):
        judge(scores(answers), FRAMES["items"], FRAMES["candidates"], where="x.parquet")


def test_an_item_without_a_wrong_option_is_refused():
    frames = benchmark({"P1": (["a"], ["a"])})
    with pytest.raises(ValueError, match="needs a correct and a wrong option"):
        judge(scores({("P1/Qs0", 0): [-1.0]}), frames["items"], frames["candidates"])


def test_the_label_states_the_bos_policy_and_inexact_scores():
    rows = {
        "gpt2": {"source": "hub:gpt2", "kind": "causal", "bos": "none", "dtype": "float32"},
        "bert": {"source": "hub:bert", "kind": "masked", "bos": "-", "dtype": "bfloat16"},
        "own": {"source": "control:masked", "kind": "masked", "bos": "-", "dtype": "float32"},
    }
    small = {cell.text: cell.small for cell in grid.models(rows).values()}
    assert small == {
        "gpt2": "causal, BOS none",
        "bert": "masked, bfloat16, not exact",
        "own": "masked, control",
    }
    assert probe("x", source="control:masked").control
