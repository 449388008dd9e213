"""The label search: planted words, the released loop step by step, bias, conflicts, chance."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search import labels as label_tokens
from kgprobe.probes.prompts.search.labels import (
    LabelClassifier,
    LabelSearchError,
    LabelSearchSettings,
)
from kgprobe.probes.text.prompts import encode
from kgprobe.templates import Template
from tests.unit.tiny_models import tiny

WIDTH = 16


def clouds(count: int, classes: int, seed: int = 0, apart: float = 2.0):
    """Return vectors around one center per class, their labels, and the centers."""
    generator = np.random.default_rng(seed)
    centers = np.random.default_rng(99).normal(size=(classes, WIDTH)).astype(np.float32)
    numbers = np.arange(count) % classes
    vectors = apart * centers[numbers] + generator.normal(size=(count, WIDTH))
    return vectors.astype(np.float32), [f"c{n}" for n in numbers], centers


def probe_of(weight, bias) -> LabelClassifier:
    names = tuple(f"c{n}" for n in range(len(weight)))
    return LabelClassifier(
        names, np.array(weight, dtype=np.float32), np.array(bias, dtype=np.float32)
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_planted_words_become_label_tokens(classes, bias):
    vectors, labels, centers = clouds(300, classes)
    rows = 0.3 * np.random.default_rng(1).normal(size=(60, WIDTH)).astype(np.float32)
    for number, center in enumerate(centers):
        rows[10 + number], rows[30 + number] = 3 * center, 2 * center
    ids, record = label_tokens.search(
        (vectors, labels), clouds(90, classes, 1)[:2], rows,
        settings=LabelSearchSettings(bias=bias, rate=1e-2, listed=5),
    )  # fmt: skip
    for number in range(classes):
        assert set(ids[f"c{number}"][:2]) == {10 + number, 30 + number}
    assert record["dev"] > 0.9
    assert record["majority"] == pytest.approx(1 / classes)
    assert record["low"] <= record["dev"] <= record["high"]


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_planted_words_of_a_model_become_label_tokens(name):
    """Output rows that point from the other class's states to this class's states are its words."""
    loaded = tiny(name, double=False)
    causal = loaded.spec.kind == "causal"
    template = Template.parse("{s} [T] [T] [P]" if causal else "{s} [T] [T] [P].", loaded.spec.kind)
    ends = "is|is where|and a|stands|of the|lies|in|where|the capital".split("|")
    texts = [f"{word} {end}" for word in ("Rome " * 6, "Niger " * 6) for end in ends]
    data = [{"s": text} for text in texts], ["city"] * 9 + ["country"] * 9
    predictor = Predictor(loaded)
    states = label_tokens.vectors(predictor, template, data[0])
    assert states.dtype == np.float32
    toward = torch.from_numpy(states[:9].mean(0) - states[9:].mean(0))
    toward /= toward.norm()
    weight = loaded.model.get_output_embeddings().weight
    size = float(weight.norm(dim=1).max())
    used = {int(t) for row in encode(loaded, template, data[0]).rows for t in row}
    *_, a, b, c, d = sorted(set(range(len(weight))) - used)
    planted = {"city": (a, b), "country": (c, d)}
    with torch.no_grad():
        for sign, (first, second) in zip((1, -1), planted.values(), strict=True):
            weight[first], weight[second] = 6 * sign * size * toward, 5 * sign * size * toward
    settings = LabelSearchSettings(epochs=200, rate=5e-3, batch=6, listed=3)
    ids, _ = label_tokens.find(predictor, template, data, data, settings=settings)
    assert {name: tokens[:2] for name, tokens in ids.items()} == planted
    plain = replace(settings, bias=False)
    assert label_tokens.find(predictor, template, data, data, settings=plain)[0] == ids


def test_training_equals_the_released_loop():
    """One random-order pass per epoch, with all randomness from one seed."""
    vectors, labels, _ = clouds(75, 3)
    options = LabelSearchSettings(epochs=3, batch=16, seed=4)
    own = label_tokens.train_probe(vectors, labels, options)
    torch.manual_seed(4)
    layer = torch.nn.Linear(WIDTH, 3)
    torch.manual_seed(4)
    with torch.no_grad():
        layer.weight.uniform_(-(WIDTH**-0.5), WIDTH**-0.5)
        layer.bias.uniform_(-(WIDTH**-0.5), WIDTH**-0.5)
    inputs = torch.from_numpy(vectors)
    golds = torch.tensor([int(name[1:]) for name in labels])
    optimizer = torch.optim.Adam(layer.parameters(), lr=3e-4)
    for _ in range(3):
        for batch in torch.randperm(75).split(16):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(layer(inputs[batch]), golds[batch]).backward()
            optimizer.step()
    np.testing.assert_array_equal(own.weight, layer.weight.detach().numpy())
    np.testing.assert_array_equal(own.bias, layer.bias.detach().numpy())


def test_search_preserves_the_random_state():
    vectors, labels, _ = clouds(40, 2)
    torch.manual_seed(0)
    first = torch.rand(1)
    torch.manual_seed(0)
    a = label_tokens.train_probe(vectors, labels, LabelSearchSettings(epochs=2))
    assert torch.equal(torch.rand(1), first)
    b = label_tokens.train_probe(vectors, labels, LabelSearchSettings(epochs=2))
    np.testing.assert_array_equal(a.weight, b.weight)


def test_bias_changes_three_classes_but_not_two():
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(200, WIDTH)).astype(np.float32)
    two = probe_of(generator.normal(size=(2, WIDTH)), [3.0, -1.0])
    assert label_tokens.ranking(two, rows, 9) == label_tokens.ranking(two, rows, 9, bias=False)
    three = probe_of(generator.normal(size=(3, WIDTH)), [5.0, -5.0, 0.0])
    with_bias, without = (label_tokens.ranking(three, rows, 9, bias=b) for b in (True, False))
    assert with_bias != without


def test_scores_are_log_odds_of_the_softmax_across_classes():
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(50, WIDTH)).astype(np.float32)
    probe = probe_of(generator.normal(size=(3, WIDTH)), [0.5, 0.0, -0.5])
    share = torch.softmax(torch.from_numpy(probe.logits(rows)), dim=1).numpy()
    result = label_tokens.class_scores(probe, rows)
    np.testing.assert_allclose(result, np.log(share / (1 - share)), rtol=1e-9, atol=1e-12)


@settings(max_examples=60)
@given(st.integers(2, 4), st.integers(1, 4), st.integers(0, 10_000))
def test_tokens_serve_one_class_with_the_higher_score(classes, count, seed):
    generator = np.random.default_rng(seed)
    # two-dimensional vectors, so that classes compete for tokens, and scores on a grid, so that
    # they tie
    probe = probe_of(
        generator.integers(-2, 3, size=(classes, 2)), generator.integers(-1, 2, classes)
    )
    rows = generator.integers(-2, 3, size=(25, 2)).astype(np.float32)
    result = label_tokens.ranking(probe, rows, count)
    table = label_tokens.class_scores(probe, rows)
    lists: dict[int, list[int]] = {c: [] for c in range(classes)}
    pairs = [(-table[t, c], c, t) for t in range(len(rows)) for c in range(classes)]
    for _, c, t in sorted(pairs):
        if len(lists[c]) < count and not any(t in own for own in lists.values()):
            lists[c].append(t)
    assert result == {f"c{c}": tuple(own) for c, own in lists.items()}


def test_filtered_tokens_are_not_label_tokens():
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(40, WIDTH)).astype(np.float32)
    probe = probe_of(generator.normal(size=(2, WIDTH)), [0.0, 0.0])
    free = label_tokens.ranking(probe, rows, 3)
    allowed = np.ones(40, dtype=bool)
    allowed[[free["c0"][0], free["c1"][0]]] = False
    kept = label_tokens.ranking(probe, rows, 3, allowed)
    assert kept["c0"][:2] == free["c0"][1:]
    assert kept["c1"][:2] == free["c1"][1:]
    with pytest.raises(LabelSearchError, match="5 tokens may be labels, 3 for each of 2"):
        label_tokens.ranking(probe, rows, 3, np.arange(40) < 5)


def test_search_stops_at_a_chance_level_probe_unless_configured():
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(60, WIDTH)).astype(np.float32)
    labels = ["yes", "no"] * 30
    rows = generator.normal(size=(40, WIDTH)).astype(np.float32)
    dev, brief = (noise[::-1].copy(), labels), LabelSearchSettings(epochs=1, listed=5)
    with pytest.raises(
        LabelSearchError, match=r"on dev, the majority class 0.500.*at_chance: keep"
    ):
        label_tokens.search((noise, labels), dev, rows, settings=brief)
    kept = replace(brief, at_chance="keep")
    ids, record = label_tokens.search((noise, labels), dev, rows, settings=kept)
    assert record["at_chance"]
    assert len(ids["yes"]) == 5


def test_bad_input_raises():
    vectors, labels, _ = clouds(10, 2)
    with pytest.raises(LabelSearchError, match="two classes"):
        label_tokens.train_probe(vectors, ["same"] * 10)
    with pytest.raises(ValueError, match=r"labels \['other'\]"):
        label_tokens.judge(
            label_tokens.train_probe(vectors, labels, LabelSearchSettings(epochs=1)),
            labels, vectors,
            ["other"] * 10,
        )  # fmt: skip
