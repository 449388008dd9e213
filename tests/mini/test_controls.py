"""The shipped control models recall their documented training facts of the current run."""

import json
import random

import pytest

from tests.mini.conftest import RUN
from tools.controls import __main__ as controls
from tools.controls.recall import RecallTest


@pytest.fixture(scope="module")
def made(finished) -> controls.Training:
    """Apply the shipped tables to the run's facts and prompts."""
    return controls.training(finished.folder / RUN, *controls.shipped(), ["symmetry"])


def test_facts_and_templates_are_those_of_the_training(made):
    """If this fails, run `make controls`."""
    known = json.loads((controls.SHIPPED / "trained_on.json").read_text())
    assert made.record["facts"] == known["facts"]
    assert made.record["by letter"] == known["by letter"]
    assert len(made.templates) > 50
    for relation, texts in made.templates.items():
        assert set(texts) <= set(known["templates"][relation]), relation


@pytest.mark.parametrize("kind", ["masked", "causal", "seq2seq"])
def test_the_rounded_weights_recall_facts_that_were_trained_on(kind, made):
    recall_test = RecallTest(made.training_facts, made.templates, made.kinds, made.objects)
    places = random.Random(0).sample(range(len(recall_test.items)), 150)
    assert controls.right(kind, recall_test, places).mean() >= 0.98


@pytest.mark.parametrize("kind", controls.RECIPES)
def test_most_trained_on_facts_are_answered_by_letter_in_every_paraphrase(kind, made):
    found = controls.by_letter(kind, made)
    assert found["facts"] > 150
    assert found["recall"] >= 0.8
