"""Questions with lettered options on which the causal control model is trained."""

import numpy as np
import pytest
import torch

from kgprobe.benchmarks.ontoprobe.choices import QUESTIONS
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.scoring.choice.choose import choose
from kgprobe.probes.scoring.choice.text import ChoiceQuestion
from tools.controls import letters
from tools.controls.rows import IGNORED
from tools.controls.tokens import train_tokenizer
from tools.controls.train import Recipe, build_model
from tools.controls.training_facts import TrainingFact

LABELS = [f"{a}{b} class" for a in ("lake", "ship", "road", "song", "tree") for b in "bcdfg"]
FACTS = [
    *(TrainingFact("TP", f"Subject {n}", LABELS[n]) for n in range(20)),
    TrainingFact("SCO", "upper", LABELS[9]),
    TrainingFact("P36", "Peru", "Lima"),
]


@pytest.fixture(scope="module")
def made():
    """Return questions, an untrained model and its tokenizer."""
    labels = [*LABELS, *(label for fact in FACTS for label in fact[1:])]
    tokenizer = train_tokenizer("causal", labels, [letters.CUES], 400, 400)
    torch.manual_seed(1)
    recipe = Recipe(layers=1, width=16, heads=2, positions=400, spread=0.5)
    model = build_model("causal", tokenizer, recipe).eval()
    options = {"TP": LABELS, "SCO": LABELS}
    asked = letters.LetterQuestions(tokenizer, FACTS, options, np.random.default_rng(0))
    return asked, model, tokenizer


def test_the_question_of_ontoprobe_is_held_out():
    assert letters.PARAPHRASES.keys() <= QUESTIONS.keys()
    for task, paraphrases in letters.PARAPHRASES.items():
        assert len(set(paraphrases)) >= 2
        assert QUESTIONS[task] not in paraphrases


@pytest.mark.parametrize("is_label_first", [False, True])
def test_a_row_asks_for_letter_and_label_of_the_fact(made, is_label_first):
    asked, _, tokenizer = made
    rng = np.random.default_rng(3)
    for fact in asked.facts:
        row = asked._row(fact, "What is {}?", 5, rng, is_label_first)
        ids, targets, position = row
        text = tokenizer.decode(ids)
        question, answer = text.split(letters.CUE)
        options = question.split("? ")[1].split(", ")
        assert [option[:4] for option in options] == ["(a) ", "(b) ", "(c) ", "(d) ", "(e) "]
        assert len({option[4:] for option in options}) == 5
        (gold,) = [option[1] for option in options if option[4:] == fact.object]
        right = f" {fact.object} ({gold})" if is_label_first else f" ({gold}) {fact.object}"
        assert answer == f"{right}</s>"
        wanted = f"{fact.object}{gold}" if is_label_first else f"{gold}{fact.object}"
        assert tokenizer.decode(targets[targets != IGNORED]).replace(" ", "") == (
            wanted.replace(" ", "")
        )
        assert (position == 0) == is_label_first
        assert is_label_first or tokenizer.decode(ids[position]) == gold


def test_recall_equals_what_the_probe_chooses_by_letter(made, monkeypatch):
    # an untrained model is right on about half of the facts
    monkeypatch.setattr(letters, "OPTIONS", 2)
    monkeypatch.setattr(letters, "PARAPHRASES", {"TP": ("What is {}?",), "SCO": ("What are {}?",)})
    asked, model, tokenizer = made
    spec = ModelSpec("tiny", "causal", "control:tiny", bos="forced")
    loaded = Loaded(spec, model, tokenizer, model.device, tokenizer.model_max_length)
    rng, wanted = np.random.default_rng(0), []
    for fact in asked.facts:
        hits = []
        for paraphrase in letters.PARAPHRASES[fact.relation]:
            ids, _, _ = asked._row(fact, paraphrase, letters.OPTIONS, rng, False)
            question = tokenizer.decode(ids).split(letters.CUE)[0].removeprefix("<s>").strip()
            text, listed = question.split("? ")
            options = [option[4:] for option in listed.split(", ")]
            choice = ChoiceQuestion("item", f"{text}?", tuple(options))
            (found,) = choose(loaded, [choice], ["letter"]).chosen
            hits.append(options[found.chosen] == fact.object)
        wanted.append(all(hits))
    found = asked.right(model)
    assert found.tolist() == wanted
    assert 5 < sum(wanted) < 16


def test_questions_get_more_options_once_most_are_right(made, monkeypatch):
    _, model, tokenizer = made
    options = {"TP": LABELS, "SCO": LABELS}
    asked = letters.LetterQuestions(tokenizer, FACTS, options, np.random.default_rng(0))
    monkeypatch.setattr(letters, "ENOUGH", -1.0)
    seen = []
    for _ in range(7 * letters.BATCHES):
        seen.append(asked.most)
        assert asked.loss(model) > 0
    assert sorted(set(seen)) == [3, 6, 9, 12, 15, 18, 20]
