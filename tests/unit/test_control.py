"""Control models: byte-identical training, loadable folders, learned facts."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kgprobe.job import sha256
from tools.controls.tokens import train_tokenizer
from tools.controls.train import BEFORE, NEAR, RECIPES, build_model, train_control
from tools.controls.training_facts import TrainingFact

COUNTRIES = "Peru Chad Iran Cuba Mali Oman Fiji Laos Togo Iraq".split()
CITIES = "Lima Tunis Cairo Dakar Minsk Sofia Riga Oslo Bern Rome".split()
TEXTS = ["The capital of [X] is [Y].", "[Y] is the capital of [X].", "[X] has the capital [Y]."]
TRAINING_FACTS = [TrainingFact("P36", c, t) for c, t in zip(COUNTRIES, CITIES, strict=True)]


def train(kind: str, folder: Path, **changes) -> dict[str, object]:
    quick = {"rows": 16, "warmup": 20, "every": 25, "glance": 12}
    recipe = replace(RECIPES[kind], **{**quick, **changes})
    labels = [*COUNTRIES, *CITIES]
    return train_control(kind, TRAINING_FACTS, labels, {"P36": TEXTS}, 0, folder, recipe)


@pytest.mark.parametrize("kind", ["masked", "causal", "seq2seq"])
def test_training_is_byte_reproducible(tmp_path, kind):
    threads = torch.get_num_threads()
    for name in ("a", "b"):
        record = train(kind, tmp_path / name, steps=4, recall=0.0)
        assert 300_000 < record["parameters"] < 1_500_000
    assert sha256(tmp_path / "a") == sha256(tmp_path / "b")
    assert torch.get_num_threads() == threads


def test_unknown_kind_and_missing_facts_raise(tmp_path):
    with pytest.raises(ValueError, match="unknown kind 'api' of control model; valid: masked"):
        train_control("api", TRAINING_FACTS, [], {"P36": TEXTS}, 0, tmp_path / "x")
    with pytest.raises(ValueError, match="no facts to train on"):
        train_control("masked", [], [], {"P36": TEXTS}, 0, tmp_path / "x")


def test_heads_of_an_untrained_masked_model_look_back():
    """The first heads of the first layer attend to the tokens that BEFORE says, whatever the
    words."""
    ids = torch.arange(20, 60)[None]
    torch.manual_seed(0)
    recipe = RECIPES["masked"]
    tokenizer = train_tokenizer("masked", [*COUNTRIES, *CITIES], TEXTS, 300, recipe.positions)
    model = build_model("masked", tokenizer, recipe).eval()
    model.set_attn_implementation("eager")
    weights = model(ids, output_attentions=True).attentions[0][0]
    assert len(BEFORE) == 3 < len(weights) == recipe.heads
    for head, before in enumerate(BEFORE):
        back = weights[head].diagonal(-before)
        assert len(back) == 40 - before
        assert back.mean() > 0.8, head
    # the last head has no such beginning: it attends to all tokens alike
    assert weights[3].max() < 0.1


def test_heads_of_an_untrained_seq2seq_model_look_back():
    torch.manual_seed(0)
    recipe = RECIPES["seq2seq"]
    tokenizer = train_tokenizer("seq2seq", [*COUNTRIES, *CITIES], TEXTS, 300, recipe.positions)
    attention = build_model("seq2seq", tokenizer, recipe).encoder.block[0].layer[0].SelfAttention
    biases = attention.compute_bias(12, 12)[0]
    assert {(before, head) for before, head in NEAR} == {(2, 0), (1, 1), (3, 1)}
    for head, tokens in enumerate([{2}, {1, 3}, set(), set()]):
        row = biases[head, 8]
        assert {8 - int(place) for place in row.nonzero()} == tokens
