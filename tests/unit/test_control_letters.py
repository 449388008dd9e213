"""Questions with lettered options on which the control models are trained."""

import numpy as np
import pytest
import torch

from kgprobe.benchmarks.ontoprobe.choices import QUESTIONS
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.scoring.choice.choose import choose
from kgprobe.probes.scoring.choice.text import CUE, LETTERS, ChoiceQuestion, lettered
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


@pytest.fixture(scope="module", params=["masked", "causal", "seq2seq"])
def made(request):
    """Return questions, an untrained model and its tokenizer."""
    kind = request.param
    labels = [
        *LABELS,
        *(label for fact in FACTS for label in fact[1:]),
        "(a), b: what?",
        " ".join(LETTERS),
    ]
    tokenizer = train_tokenizer(kind, labels, [letters.CUES], 400, 400)
    torch.manual_seed(1)
    recipe = Recipe(layers=1, width=16, heads=2, positions=400, spread=0.5)
    model = build_model(kind, tokenizer, recipe).eval()
    options = {"TP": LABELS, "SCO": LABELS}
    asked = letters.LetterQuestions(kind, tokenizer, FACTS, options, np.random.default_rng(0))
    return kind, asked, model, tokenizer


def completed(kind, tokenizer, ids, targets):
    """Return the text of a row with its targets in their places, and without special tokens."""
    if kind == "seq2seq":
        first, *wanted, second, end = targets
        slot = int(np.flatnonzero(ids == first)[0])
        assert ids[-1] == end == tokenizer.eos_token_id
        assert tokenizer.decode([first, second]) == "<extra_id_0><extra_id_1>"
        ids = np.concatenate([ids[:slot], wanted, ids[slot + 1 :]])
    elif kind == "masked":
        hidden = targets != IGNORED
        assert (ids == tokenizer.mask_token_id).tolist() == hidden.tolist()
        ids = np.where(hidden, targets, ids)
    return tokenizer.decode(ids, skip_special_tokens=True)


def test_the_question_of_ontoprobe_is_held_out():
    assert letters.PARAPHRASES.keys() <= QUESTIONS.keys()
    for task, paraphrases in letters.PARAPHRASES.items():
        assert len(set(paraphrases)) >= 2
        assert QUESTIONS[task] not in paraphrases


def squeezed(text):
    return text.replace(" ", "")


@pytest.mark.parametrize("is_label_first", [False, True])
def test_a_row_asks_for_letter_and_label_of_the_fact(made, is_label_first):
    kind, asked, _, tokenizer = made
    rng, seen, used = np.random.default_rng(3), set(), set()
    for fact in asked.facts:
        ids, targets, position = asked._row(fact, "What is {}?", 5, rng, is_label_first)
        text = squeezed(completed(kind, tokenizer, ids, targets))
        question, answer = text.replace("\n", "").casefold().split("answer:")
        options = question.split("?")[1].split(",")
        drawn = [option[1] for option in options]
        assert [option[:3] for option in options] == [f"({letter})" for letter in sorted(drawn)]
        assert len(set(drawn)) == len({option[3:] for option in options}) == 5
        used |= set(drawn)
        label = squeezed(fact.object)
        (gold,) = [option[1] for option in options if option[3:] == label]
        both = f"{label}({gold})" if is_label_first else f"({gold}){label}"
        parts = {both: 2, label: 0, f"({gold})": 1}
        assert answer in parts
        seen.add(parts[answer])
        wanted = squeezed(tokenizer.decode(targets[targets != IGNORED], skip_special_tokens=True))
        if kind == "causal":
            assert wanted == both.replace("(", "").replace(")", "")
        else:
            assert squeezed(wanted) == (label if answer == label else gold)
        assert (position == 0) == is_label_first
        assert is_label_first or squeezed(tokenizer.decode([targets[position]])) == gold
    assert used == set(LETTERS[: letters.OPTIONS])
    assert seen == ({2} if kind == "causal" else {0, 2} if is_label_first else {1})


def test_recall_equals_what_the_probe_chooses_by_letter(made, monkeypatch):
    # an untrained model is right on about half of the facts
    monkeypatch.setattr(letters, "OPTIONS", 2)
    monkeypatch.setattr(letters, "PARAPHRASES", {"TP": ("What is {}?",), "SCO": ("What are {}?",)})
    kind, asked, model, tokenizer = made
    spec = ModelSpec("tiny", kind, "control:tiny", bos="forced" if kind == "causal" else "model")
    loaded = Loaded(spec, model, tokenizer, model.device, tokenizer.model_max_length)
    listed, ids = [], asked._ids
    monkeypatch.setattr(asked, "_ids", lambda text: listed.append(text) or ids(text))
    found = asked.right(model)
    facts = [fact for fact in asked.facts for _ in letters.PARAPHRASES[fact.relation]]
    listed = [text.removesuffix(CUE).split("? ") for text in listed if text.endswith(CUE)]
    assert len(listed) == len(facts) > 20
    wanted = []
    for fact, (question, listing) in zip(facts, listed, strict=True):
        options = tuple(option[4:] for option in listing.split(", "))
        assert listing == lettered(options)
        choice = ChoiceQuestion("item", f"{question}?", options)
        (chosen,) = choose(loaded, [choice], ["letter"]).chosen
        wanted.append(options[chosen.chosen] == fact.object)
    assert found.tolist() == wanted
    assert 3 < sum(wanted) < 18
    assert asked.recall(model) == {"facts": len(facts), "recall": sum(wanted) / len(facts)}
    assert asked.wrong == [
        fact for fact, is_right in zip(facts, wanted, strict=True) if not is_right
    ]


def test_half_of_the_questions_are_about_facts_that_were_wrong(made, monkeypatch):
    kind, _, model, tokenizer = made
    asked = letters.LetterQuestions(
        kind, tokenizer, FACTS, {"TP": LABELS, "SCO": LABELS}, np.random.default_rng(0)
    )
    asked.wrong = [FACTS[20]]
    subjects, row = [], asked._row
    monkeypatch.setattr(
        asked, "_row", lambda fact, *rest: subjects.append(fact) or row(fact, *rest)
    )
    for _ in range(5):
        asked.loss(model)
    assert 0.4 < subjects.count(FACTS[20]) / len(subjects) < 0.66
    assert len(set(subjects)) > 15


def test_questions_get_more_options_once_most_are_right(made, monkeypatch):
    kind, _, model, tokenizer = made
    monkeypatch.setattr(letters, "ENOUGH", -1.0)
    monkeypatch.setattr(letters, "ROWS", 8)
    monkeypatch.setattr(letters, "BATCHES", 5)
    options = {"TP": LABELS, "SCO": LABELS}
    asked = letters.LetterQuestions(kind, tokenizer, FACTS, options, np.random.default_rng(0))
    seen = []
    for _ in range(7 * letters.BATCHES):
        seen.append(asked.most)
        assert asked.loss(model) > 0
    assert sorted(set(seen)) == [3, 6, 9, 12, 15, 18, 20]
