"""Rank frames of a model: all configurations, candidates that cannot be tokenized, refusals."""

from functools import partial

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.probes.jobs.frames import rankable
from kgprobe.probes.jobs.methods import cloze as ranking
from kgprobe.probes.models.load import ModelSpec
from tests.unit.study_frames import of_rows
from tests.unit.tiny_models import tiny

LABELS = ["country", "capital", "Rome", "a sentence", "\u200b", "one token"]


@pytest.fixture
def frames():
    items = [("TP-20", "TP", "test", "TP", "Paris", "q1", "class", [0, 3], 20, "{}"),
             ("TP-21", "TP", "test", "TP", "Niger", "q2", "class", [5], 21, "{}")]  # fmt: skip
    prompts = [("TP-m1", "TP", 1, "[X] is a [Y] .", "manual"),
               ("TP-m3", "TP", 3, "[X], [Y] .", "manual")]  # fmt: skip
    candidates = [("class", i, x, x) for i, x in enumerate(LABELS)]
    return (
        of_rows(schema.ITEMS, items),
        of_rows(schema.CANDIDATES, candidates),
        of_rows(schema.PROMPTS, prompts),
    )


@pytest.fixture
def loaded(monkeypatch):
    model = tiny("bert")
    ranks = partial(ranking.rank_frame, load=lambda spec: model)
    monkeypatch.setattr(ranking, "rank_frame", ranks)
    monkeypatch.setattr("kgprobe.probes.jobs.frames.outline", lambda spec: model)
    return model


SPEC = ModelSpec("tiny", "masked", "random")


def test_frames_satisfy_schemas_and_hold_all_configurations(loaded, frames):
    ranks, top, record = ranking.rank_frame(SPEC, *frames)
    schema.check(ranks, schema.RANKS)
    schema.check(top, schema.TOPS)
    assert ranks.height == 3 * 2 * 6
    assert record["prompts"] == 4
    assert set(ranks["template"]) == {1, 3}


def test_a_candidate_without_tokens_is_left_out_and_reported(loaded, frames):
    kept = rankable(loaded, {"class": LABELS})
    ids = loaded.tokenizer(LABELS, add_special_tokens=False)["input_ids"]
    gone = [label for label, own in zip(LABELS, ids, strict=True) if not own]
    assert kept["class"].left_out == gone
    ranks, top, record = ranking.rank_frame(SPEC, *frames)
    assert record["candidates_left_out"] == ({"class": gone} if gone else {})
    assert set(top["candidate"]) <= {i for i, x in enumerate(LABELS) if x not in gone}
    assert set(ranks["gold"]) == {0, 3, 5}  # places of the whole set


def test_leave_out_drops_unknown_tokens_and_reports_items_without_gold(loaded, frames):
    items, candidates, prompts = frames
    odd = candidates.with_columns(
        label=pl.when(pl.col("index") == 5).then(pl.lit("東")).otherwise(pl.col("label"))
    )
    unknown = loaded.tokenizer.unk_token_id
    ids = loaded.tokenizer(["東"], add_special_tokens=False)["input_ids"][0]
    _, _, record = ranking.rank_frame(SPEC, items, odd, prompts, unknown="leave_out")
    if unknown in ids or not ids:
        assert record["items_without_gold"] == ["TP-21"]
        assert "東" in record["candidates_left_out"]["class"]


def test_a_shuffled_candidate_order_changes_no_rank(loaded, frames):
    items, candidates, prompts = frames
    before, _, _ = ranking.rank_frame(SPEC, *frames)
    order = np.random.default_rng(3).permutation(len(LABELS)).tolist()
    shuffled = candidates.with_columns(index=pl.Series(order, dtype=pl.Int32))
    moved = items.with_columns(
        answers=pl.Series(
            [[order[a] for a in own] for own in items["answers"]], dtype=pl.List(pl.Int32)
        )
    )
    after, _, _ = ranking.rank_frame(SPEC, moved, shuffled, prompts)
    back = {new: old for old, new in enumerate(order)}
    after = after.with_columns(gold=pl.col("gold").replace_strict(back, return_dtype=pl.Int32))
    key = list(schema.RANKS.key)
    assert after.sort(key)["best"].equals(before.sort(key)["best"])
    assert after.sort(key)["worst"].equals(before.sort(key)["worst"])
