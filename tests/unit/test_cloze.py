"""Cloze ranking against literal loops: one candidate per pass, no batching, no padding."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch

from kgprobe.probes.jobs.methods.cloze import questions
from kgprobe.probes.models.batching import Budget
from kgprobe.probes.scoring.cloze import rank as cloze
from kgprobe.probes.scoring.cloze.vectors import _sentences
from kgprobe.probes.text.mask_slots import ClozePrompt, candidate_ids, tokenize_prompts
from tests.unit.literal_scores import cloze as literal
from tests.unit.tiny_models import tiny

LABELS = ["Paris", "Rome", "capital of France", "Niger", "Nigeria", "a country", "country a",
          "Burkina Faso", "Italy", "lie in Africa", "東京", "São Tomé", "option", "is",
          "Niger and"]  # fmt: skip
QUESTIONS = [
    ClozePrompt("i1", 0, "The capital of France is ", " .", "set", (0,)),
    ClozePrompt("i1", 1, "It has capital ", " .", "set", (0, 2)),
    # a private-use character, as in icon fonts: a text like any other
    ClozePrompt("i2", 0, "Niger and \uf0b7 lie in Africa and ", " is one of them.", "set", (3, 4)),
    ClozePrompt("i3", 0, "", " is a country.", "set", (8,)),
    ClozePrompt("i4", 0, "The capital of France is ", " .", "set", (1,)),
]
MASKED = ["bert", "roberta", "albert", "distilbert", "electra"]


def pool(parts, pooling):
    return {"mean": sum(parts) / len(parts), "max": max(parts), "first": parts[0]}[pooling]


def all_scores(loaded, asked=QUESTIONS, labels=LABELS, **options):
    out = np.empty((len(asked), 6, len(labels)))
    for chunk in cloze.scores(loaded, asked, {"set": labels}, **options):
        out[chunk.indices] = chunk.scores
    return out


@pytest.mark.parametrize(
    ("name", "double"),
    [(n, True) for n in [*MASKED, "t5"]] + [(n, False) for n in ("bert", "roberta", "t5")],
)
def test_scores_equal_a_literal_loop(name, double):
    loaded = tiny(name, double=double)
    if not double:
        # weights of the usual size: larger ones amplify float32 noise
        for weight in loaded.model.parameters():
            weight.div_(3.0) if weight.dim() > 1 else None
    result = all_scores(loaded)
    for q in (0, 3) if double else (2,):
        question = QUESTIONS[q]
        parts = {m: [literal(loaded, question, c, m) for c in LABELS] for m in cloze.MASKS}
        for k, (masks, pooling) in enumerate(cloze.CONFIGURATIONS):
            expected = [pool(p, pooling) for p in parts[masks]]
            assert result[q, k] == pytest.approx(expected, abs=1e-9 if double else 1e-5)


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_ranks_and_top_follow_from_the_scores(name):
    loaded = tiny(name, double=False)
    values = all_scores(loaded)
    result = cloze.rank(loaded, QUESTIONS, {"set": LABELS}, top=3)
    ranks, top = result.ranks, result.top
    sizes = [len(i) for i in candidate_ids(loaded, LABELS, "none", "").ids]
    row = place = 0
    for q, question in enumerate(QUESTIONS):
        for k, (masks, pooling) in enumerate(cloze.CONFIGURATIONS):
            scores = values[q, k].tolist()
            for gold in question.golds:
                better = sum(s > scores[gold] for s in scores)
                tied = [c for c, s in enumerate(scores) if s == scores[gold]]
                in_order = sorted(tied, key=lambda c: (sizes[c], c)).index(gold)
                assert [ranks[c][row] for c in cloze.RANKS] == [
                    question.item, question.template, masks, pooling, gold,
                    better + 1, better + len(tied), better + 1 + in_order, sizes[gold],
                    scores[gold],
                ]  # fmt: skip
                row += 1
            order = sorted(range(len(scores)), key=lambda c: (-scores[c], c))
            for rank in range(3):
                assert [top[c][place] for c in cloze.TOP] == [
                    question.item, question.template, masks, pooling,
                    rank + 1, order[rank], scores[order[rank]],
                ]  # fmt: skip
                place += 1
    assert row == len(ranks["gold"])
    assert place == len(top["place"])


def test_equal_first_tokens_tie_under_first_pooling():
    loaded = tiny("roberta", double=False)
    labels = ["Niger+", "Niger-", "Niger", "x"]
    ids = candidate_ids(loaded, labels, "none", "").ids
    assert len(ids[0]) == len(ids[1])
    assert ids[0][0] == ids[1][0]
    asked = [ClozePrompt("i", 0, "It is ", ".", "set", (0, 1))]
    ranks = cloze.rank(loaded, asked, {"set": labels}).ranks
    first = (ranks["pooling"] == "first") & (ranks["masks"] == "multi")
    assert (ranks["worst"] - ranks["best"])[first].tolist() == [1, 1]
    assert ranks["best"][first][0] == ranks["best"][first][1]


def test_reordered_tokens_tie_under_single_mean_pooling():
    loaded = tiny("bert", double=False)
    ids = candidate_ids(loaded, LABELS, "none", "").ids
    pair = [LABELS.index("a country"), LABELS.index("country a")]
    assert sorted(ids[pair[0]]) == sorted(ids[pair[1]])
    single = cloze.CONFIGURATIONS.index(("single", "mean"))
    values = all_scores(loaded)[:, single][:, pair]
    assert (values[:, 0] == values[:, 1]).all()


@pytest.mark.parametrize("positions", [1, 64, 1 << 30])
def test_results_are_independent_of_the_token_budget(positions):
    loaded = tiny("bert")
    assert all_scores(loaded, budget=Budget(positions)) == pytest.approx(
        all_scores(loaded), abs=1e-9
    )


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_results_are_complete_after_out_of_memory(name, monkeypatch):
    loaded = tiny(name)
    expected = all_scores(loaded)
    part = loaded.model.base_model if name == "bert" else loaded.model.get_decoder()
    plain, calls = part.forward, []

    def scarce(*args, **options):
        calls.append(1)
        # the first three passes of a decoder are its self-check
        if len(calls) == 4:
            raise torch.OutOfMemoryError("injected")
        return plain(*args, **options)

    monkeypatch.setattr(part, "forward", scarce)
    record: dict = {}
    assert all_scores(loaded, record=record) == pytest.approx(expected, abs=1e-9)
    assert record["backoffs"] == [512]


def test_chunks_and_repeated_prompts(monkeypatch):
    loaded = tiny("bert")
    expected = all_scores(loaded)
    monkeypatch.setattr(cloze, "CHUNK", 1)
    chunks = list(cloze.scores(loaded, QUESTIONS, {"set": LABELS}))
    assert sorted(i for c in chunks for i in c.indices) == [0, 1, 2, 3, 4]
    assert sorted(len(c.indices) for c in chunks) == [1, 1, 1, 2]  # two prompts are equal
    for chunk in chunks:
        assert chunk.scores == pytest.approx(expected[chunk.indices], abs=1e-9)


def test_fed_positions_equal_the_planned_ones():
    loaded = tiny("bert")
    record: dict = {}
    all_scores(loaded, record=record)
    lengths = sorted({len(ids) for ids in candidate_ids(loaded, LABELS, "none", "").ids})
    # the first and the last prompt are equal
    rows, fed = [len(row.ids) for row in tokenize_prompts(loaded, QUESTIONS)[:4]], 0
    for masks in lengths:
        sizes = [size + masks - 1 for size in rows]
        fed += sum(len(b) * max(sizes[i] for i in b) for b in Budget().batches(sizes))
    assert record["positions_fed"] == fed


def test_leading_space_belongs_to_candidates_under_auto():
    loaded = tiny("roberta")
    tok = loaded.tokenizer
    asked = QUESTIONS[:1]
    with_space = tok("The capital of France is Paris .")["input_ids"]
    auto, alone = (
        candidate_ids(loaded, ["Paris"], s, " ").ids[0].tolist() for s in ("auto", "none")
    )
    assert alone == tok("Paris", add_special_tokens=False)["input_ids"]
    assert auto == tok(" Paris", add_special_tokens=False)["input_ids"]
    assert auto != alone
    row = tokenize_prompts(loaded, asked, "auto")[0]
    assert [*row.ids[: row.position], *auto, *row.ids[row.position + 1 :]] == with_space
    # a space that is a separate token also belongs to the candidate
    alone = candidate_ids(loaded, ["zebra"], "auto", " ").ids[0].tolist()
    assert alone == tok(" zebra", add_special_tokens=False)["input_ids"]
    assert len(alone) == len(tok("zebra", add_special_tokens=False)["input_ids"]) + 1


def test_unknown_tokens_are_reported_and_empty_candidates_raise():
    loaded = tiny("bert")
    record: dict = {}
    all_scores(loaded, labels=["Paris", "Ж"], asked=QUESTIONS[:1], record=record)
    assert record["candidates_with_unknown_tokens"] == {"set": ["Ж"]}
    with pytest.raises(ValueError, match=r"candidate 1 of set 'set' \(' '\) has no tokens"):
        all_scores(loaded, labels=["Paris", " "], asked=QUESTIONS[:1])


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (ClozePrompt("i", 0, "a <mask> is ", ".", "set", (0,)), "found 2"),
        (ClozePrompt("i", 7, "a " * 200, ".", "set", (0,)), "template 7: 204 tokens"),
        (
            ClozePrompt("i", 7, "a " * 124, ".", "set", (0,)),
            "tokens with [0-9]+ masks, the model takes 128",
        ),
    ],
)
def test_wrong_questions_raise(question, message):
    with pytest.raises(ValueError, match=message):
        cloze.rank(tiny("bert"), [question], {"set": LABELS})


def test_causal_models_raise():
    with pytest.raises(ValueError, match="needs a masked or seq2seq model"):
        list(cloze.scores(tiny("gpt2"), QUESTIONS, {"set": LABELS}, rows=[]))


def test_templates_become_questions():
    item = {"item": "i", "relation": "P1", "row": 0, "subject": "ß [Y] town", "candidates": "set",
            "answers": [3]}  # fmt: skip
    texts = {"relation": "P1", "index": [0, 4], "text": ["[X] is [Y] .", "[Y] has [X]."]}
    items, prompts = pl.DataFrame([item]), pl.DataFrame(texts)
    assert questions(items, prompts)["P1"] == [
        ClozePrompt("i", 0, "SS [Y] town is ", " .", "set", (3,)),
        ClozePrompt("i", 4, "", " has ß [Y] town.", "set", (3,)),
    ]
    with pytest.raises(ValueError, match="no template for its relation P1"):
        questions(items, prompts.clear())


def test_a_sentence_may_fill_the_window_of_a_causal_model():
    loaded, asked = tiny("gpt2"), ClozePrompt("i", 7, "The town is ", " here.", "set", (0,))
    none = np.zeros(0, dtype=np.int64)
    length = len(loaded.tokenizer("The town is Paris here.")["input_ids"])
    (row,), _ = _sentences(replace(loaded, limit=length), asked, ["Paris"], none)
    assert len(row) == length
    with pytest.raises(ValueError, match=f"{length} tokens with 'Paris', the model takes"):
        _sentences(replace(loaded, limit=length - 1), asked, ["Paris"], none)
