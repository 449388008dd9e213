"""Continuous prompts: gradient, optimizer, start, choice, and that they learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kgprobe.probes.baselines.optiprompt import optiprompt
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.trained import continuous
from kgprobe.probes.prompts.trained.continuous import PlainAdamW, Rows, Settings
from kgprobe.probes.prompts.wordings.published import Wording
from kgprobe.probes.scoring.cloze.words import answerable, word_ids, word_scores
from kgprobe.probes.text.prompts import encode
from kgprobe.schema import OUTCOMES, check
from kgprobe.templates import Template
from tests.unit.prompt_examples import examples
from tests.unit.tiny_models import tiny

SUBJECTS = ["Paris", "Rome", "Niger and Nigeria", "a country", "Italy", "Africa"]
WORDS = ["France", "Italy", "Africa", "Rome", "Paris"]


def rows(loaded, template, words):
    fields = [{"sub": sub} for sub in SUBJECTS]
    ids, _ = word_ids(loaded, template, words)
    gold = np.array([ids[i % len(ids)] for i in range(len(fields))])
    return Rows(encode(loaded, template, fields), gold), ids


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "t5"])
def test_the_gradient_is_that_of_finite_differences(name):
    loaded = tiny(name)
    predictor = Predictor(loaded)
    template, start = continuous.free(loaded, Settings(vectors=3))
    own, _ = rows(loaded, template, answerable(loaded, WORDS))
    batch = [0, 2, 5]
    start = (start * 20).requires_grad_(True)
    (found,) = torch.autograd.grad(continuous.loss_of(predictor, own, batch, start), start)
    rng = np.random.default_rng(0)
    # two of them compute their norms in float32 whatever the model's precision
    step, near = (1e-3, 0.02) if name in ("llama", "t5") else (1e-6, 1e-4)
    for _ in range(8):
        i, j = int(rng.integers(3)), int(rng.integers(start.shape[1]))
        moved = []
        for sign in (1, -1):
            with torch.no_grad():
                other = start.clone()
                other[i, j] += sign * step
                moved.append(float(continuous.loss_of(predictor, own, batch, other)))
        slope = (moved[0] - moved[1]) / (2 * step)
        assert float(found[i, j]) == pytest.approx(slope, rel=near, abs=near / 100)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_vectors_that_are_embeddings_give_the_scores_of_the_words(name):
    loaded = tiny(name)
    predictor = Predictor(loaded)
    stop = " ." if name == "bert" else ""
    wording = f"The capital of [X] is where [Y]{stop}"
    template, vectors = continuous.manual(loaded, wording)
    words = answerable(loaded, WORDS)
    ids, _ = word_ids(loaded, template, words)
    fields = [{"sub": sub} for sub in SUBJECTS]
    found = continuous.scores(predictor, encode(loaded, template, fields), vectors, ids)
    plain = Template.parse(f"The capital of {{sub}} is where [P]{stop}", loaded.spec.kind)
    assert found == pytest.approx(word_scores(predictor, plain, fields, words), abs=1e-5)
    assert len(vectors) == template.triggers


def test_steps_have_no_bias_correction():
    vectors = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    optimizer, by_hand = PlainAdamW(vectors), np.array([[1.0, -2.0]])
    m, v = np.zeros((1, 2)), np.zeros((1, 2))
    for gradient, rate in [([0.5, -1.0], 0.1), ([0.25, 2.0], 0.05)]:
        optimizer.step(torch.tensor([gradient], dtype=torch.float64), rate)
        g = np.array([gradient])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        by_hand = by_hand - rate * m / (np.sqrt(v) + 1e-6)
    assert vectors.numpy() == pytest.approx(by_hand, abs=1e-12)
    # the first step is 0.1 / sqrt(0.001) = 3.16 times the rate
    first = torch.zeros(1)
    PlainAdamW(first).step(torch.ones(1), 1.0)
    assert float(first) == pytest.approx(-3.162, abs=1e-3)


def test_dev_is_looked_at_three_times_an_epoch_and_at_small_data_at_least_once():
    order = np.random.default_rng(0)
    looks = [look for _, look in continuous._batches(16 * 9, Settings(epochs=2), order)]
    assert looks == [False, False, True] * 6
    assert [look for _, look in continuous._batches(5, Settings(epochs=2), order)] == [True, True]


def test_precision_is_expected_under_ties():
    found = np.array([[1.0, 2.0, 2.0], [3.0, 0.0, 1.0], [5.0, 1.0, 1.0]])
    ids = np.array([7, 8, 9])
    assert continuous.precision(found, ids, np.array([9, 7, 3])) == pytest.approx(1.5 / 3)


def facts(words):
    made = []
    for split, size in {"train": 24, "dev": 6, "test": 6}.items():
        for n in range(size):
            label = words[0] if n % 3 else words[1]
            fields = {"sub": SUBJECTS[n % len(SUBJECTS)]}
            made.append({"group": "P1", "split": split, "label": label, "fields": fields})
    made.append({"group": "P1", "split": "train", "label": "xyzzy", "fields": {"sub": "Rome"}})
    return examples(made)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_training_repeats_itself_and_leaves_the_model_alone(name):
    loaded = tiny(name, double=False)
    predictor = Predictor(loaded)
    words = answerable(loaded, WORDS)
    table = facts(words)
    settings = Settings(vectors=4, epochs=8, rate=0.03, batch=8)
    before = {k: v.clone() for k, v in loaded.model.state_dict().items()}
    found = optiprompt(predictor, table, words, settings)
    check(found.outcomes, OUTCOMES)
    record = found.records["P1"]
    # what is reported is what the kept vectors reach, never less than before training
    dev = found.outcomes.filter(split="dev")
    assert (dev["best"] == 1).mean() == pytest.approx(record["dev"])
    assert record["dev"] >= record["curve"][0][2] - 1e-6
    assert record["dropped"] == {"train": 1, "dev": 0}
    assert record["dev"] == pytest.approx(max(value for _, _, value in record["curve"]), abs=1e-5)
    assert found.vectors["P1"].shape == (4, 32)
    again = optiprompt(predictor, table, words, settings)
    assert again.outcomes.equals(found.outcomes)
    assert np.array_equal(again.vectors["P1"], found.vectors["P1"])
    assert all(torch.equal(v, before[k]) for k, v in loaded.model.state_dict().items())


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_steps_lower_the_loss(name):
    loaded = tiny(name)
    predictor = Predictor(loaded)
    template, vectors = continuous.free(loaded, Settings())
    own, _ = rows(loaded, template, answerable(loaded, WORDS))
    optimizer, losses = PlainAdamW(vectors.requires_grad_(True)), []
    for _ in range(30):
        loss = continuous.loss_of(predictor, own, range(len(SUBJECTS)), vectors)
        optimizer.step(torch.autograd.grad(loss, vectors)[0], 3e-3)
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.02


def test_the_manual_prompt_is_a_start_that_competes():
    loaded = tiny("bert", double=False)
    predictor = Predictor(loaded)
    words = answerable(loaded, WORDS)
    settings = Settings(epochs=1, rate=0.0)
    wordings = {"P1": Wording("[X] is a country in [Y] .")}
    found = optiprompt(predictor, facts(words), words, settings, wordings)
    assert found.records["P1"]["step"] == 0
    assert found.records["P1"]["vectors"] == 5
    with pytest.raises(ValueError, match="legal: shuffled, file"):
        optiprompt(predictor, facts(words), words, replace(settings, order="random"))
    with pytest.raises(ValueError, match="no word"):
        continuous.manual(loaded, "[X] [Y]")
