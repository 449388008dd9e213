"""Control models: byte-identical training, loadable folders, learned facts."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kgprobe.job import sha256
from kgprobe.probes.models.load import ModelSpec, load_model
from kgprobe.probes.scoring.sentence.score import Item, score
from tools.controls.train import RECIPES, train_control
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


@pytest.mark.nightly(
    gate=[
        "mini/test_controls.py::test_the_rounded_weights_recall_facts_that_were_trained_on",
        "unit/test_control_recall.py::test_training_goes_on_until_all_kinds_are_recalled_and_says_so",
    ]
)
@pytest.mark.parametrize("kind", ["masked", "causal", "seq2seq"])
def test_training_facts_are_ranked_first(tmp_path, kind):
    record = train(kind, tmp_path / f"control-{kind}", steps=1500)
    assert record["recall"] == {"all": {"facts": 10, "recall": 1.0}}
    assert record["steps"] < 1500
    bos = "forced" if kind == "causal" else "-"
    loaded = load_model(ModelSpec("c", kind, f"folder:{tmp_path}/control-{kind}", bos=bos))
    items = [Item(c, "P36", c, "set") for c in COUNTRIES]
    result = score(loaded, items, {"set": CITIES}, {"P36": [(0, TEXTS[0])]})
    best = result.columns["sum"].reshape(10, 10).argmax(axis=1)
    assert best.tolist() == list(range(10))


def test_unknown_kind_and_missing_facts_raise(tmp_path):
    with pytest.raises(ValueError, match="unknown kind 'api' of control model; valid: masked"):
        train_control("api", TRAINING_FACTS, [], {"P36": TEXTS}, 0, tmp_path / "x")
    with pytest.raises(ValueError, match="no facts to train on"):
        train_control("masked", [], [], {"P36": TEXTS}, 0, tmp_path / "x")
