"""Planted facts: after training on sentences, the search finds prompts that elicit their facts."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from kgprobe.metrics.intervals import wilson
from kgprobe.probes.models.load import ModelSpec, load_model
from kgprobe.probes.models.reinitialize import reinitialize
from kgprobe.probes.prompts.search.scores import Scorer, problem
from kgprobe.probes.prompts.search.search import search, settings_for
from kgprobe.templates import Template
from tools.controls.train import RECIPES, train_control
from tools.controls.training_facts import TrainingFact

TRAINED_ON = {
    "capital": "[X] has its capital in [Y] .",
    "language": "[X] mostly speaks the language [Y] .",
    "founder": "[X] was once founded by [Y] .",
}
NAMES = ["".join(p).capitalize() for p in itertools.product(("ba", "ro", "ki", "lu"), ("da", "mo",
         "ne", "su", "ti", "pa"), ("n", "l"))]  # fmt: skip
WORDS = {
    "capital": ["Lima", "Oslo", "Riga", "Bern", "Rome", "Baku"],
    "language": ["Thai", "Urdu", "Zulu", "Igbo", "Manx", "Khmer"],
    "founder": ["Anna", "Otto", "Ivan", "Nora", "Hugo", "Emma"],
}
TRAINING_FACTS = [
    TrainingFact(relation, name, words[(7 * i + 5 * k) % 6 if i % 2 else (i // 6 + k) % 6])
    for k, (relation, words) in enumerate(WORDS.items())
    for i, name in enumerate(NAMES)
]


@pytest.fixture(scope="module")
def trained_on(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    # sentences of one format: the model also learns the position of the answer
    recipe = replace(RECIPES["masked"], rows=32, width=64, positions=32)
    labels = [*NAMES, *itertools.chain(*WORDS.values())]
    texts = {relation: [text] for relation, text in TRAINED_ON.items()}
    train_control("masked", TRAINING_FACTS, labels, texts, 0, folder / "control-masked", recipe)
    return load_model(ModelSpec("c", "masked", f"folder:{folder}/control-masked"))


def facts(relation):
    result = [({"sub": x.subject}, x.object) for x in TRAINING_FACTS if x.relation == relation]
    return result[0::3], result[1::3], result[2::3]


def hits(loaded, text, trigger, test):
    """Return the number of test facts whose object is the top token of the whole vocabulary."""
    options = settings_for("default", "facts", "masked")
    known = problem(loaded, Template.parse(text, "masked"), test, test, options)
    everything = np.arange(len(known.dev))
    return int(Scorer(loaded, known).values("dev", everything, [trigger], "accuracy").sum())


@pytest.mark.nightly(gate="unit/test_autoprompt.py::test_the_same_search_as_a_literal_loop")
def test_search_from_masks_matches_the_training_sentence(trained_on):
    train, dev, test = facts("capital")
    text = "{sub} [T]x4 [P] ."
    options = settings_for("default", "facts", "masked", iterations=40, restarts=2)
    result = search(trained_on, Template.parse(text, "masked"), train, dev, options)
    n = len(test)
    sentence = hits(trained_on, TRAINED_ON["capital"], [], test)
    searched = hits(trained_on, text, result.trigger, test)
    control = reinitialize(trained_on)
    chance = search(control, Template.parse(text, "masked"), train, dev, options)
    random = hits(control, text, chance.trigger, test)
    assert searched / n >= wilson(sentence, n)[0]
    assert searched / n > wilson(random, n)[1]
