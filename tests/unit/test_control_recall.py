"""Recall of control models, fast and literal, which every kind of fact must reach."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from kgprobe.templates import fill
from tests.unit.literal_scores import row_sum
from tools.controls.recall import RecallTest
from tools.controls.tokens import train_tokenizer
from tools.controls.train import RecallError, Recipe, build_model, train_control
from tools.controls.training_facts import TrainingFact

KINDS = ["masked", "causal", "seq2seq"]
#: Ten facts of two relations; two people share a name; some names share a prefix.
TRAINING_FACTS = [
    TrainingFact("P36", "Peru", "Lima"),
    TrainingFact("P36", "New Zealand", "Wellington"),
    TrainingFact("P36", "Bolivia", "La Paz"),
    TrainingFact("P36", "Guinea", "Conakry"),
    TrainingFact("P36", "Guinea-Bissau", "Bissau"),
    TrainingFact("P106", "Michelle Williams", "actor"),
    TrainingFact("P106", "Michelle Williams", "film actor"),
    TrainingFact("P106", "Rosalind Franklin", "chemist"),
    TrainingFact("P106", "Ada Lovelace", "computer scientist"),
    TrainingFact("P106", "Sigrid Undset", "writer"),
]
TEXTS = {
    "P36": ["The capital of [X] is [Y].", "[Y] is the capital of [X]."],
    "P106": ["[X] is a [Y] by profession.", "The [Y] [X] is known.", "[X] works as [Y]."],
}
OBJECTS = {"P36": ["La Plata", "Lima", "Port-au-Prince"], "P106": ["film director", "computer"]}
KIND = {"capitals": TRAINING_FACTS[:5], "Guinea": TRAINING_FACTS[3:5], "jobs": TRAINING_FACTS[5:]}
LABELS = sorted(
    {label for fact in TRAINING_FACTS for label in fact[1:]} | {*OBJECTS["P36"], *OBJECTS["P106"]}
)
TINY = Recipe(
    layers=1, rows=10, width=32, heads=2, vocabulary=320, positions=64, every=25, warmup=20,
    mean=0.95, glance=12, steps=1500,
)  # fmt: skip


def train(kind, folder, **changes):
    recipe = replace(TINY, **changes)
    return train_control(
        kind, TRAINING_FACTS, LABELS, TEXTS, 0, folder, recipe, kinds=KIND, objects=OBJECTS
    )


def half_trained(kind):
    """Build an untrained model with larger weights: a few facts are right by chance."""
    texts = [text for each in TEXTS.values() for text in each]
    tokenizer = train_tokenizer(kind, LABELS, texts, 320, 64)
    torch.manual_seed(3)
    return build_model(kind, tokenizer, replace(TINY, spread=0.3)).eval(), tokenizer


def causal_score(model, tokenizer, text, answer):
    return row_sum(model, tokenizer(text)["input_ids"])


def masked_score(model, tokenizer, text, answer):
    coded = tokenizer(text, return_offsets_mapping=True)
    ids = coded["input_ids"]
    inside = [
        i
        for i, (start, end) in enumerate(coded["offset_mapping"])
        if max(start, answer[0]) < min(end, answer[1])
    ]
    row, total = list(ids), 0.0
    for position in inside:
        row[position] = tokenizer.mask_token_id
    for position in inside:
        logits = model(torch.tensor([row])).logits[0, position].double()
        total += float(torch.log_softmax(logits, -1)[ids[position]])
        row[position] = ids[position]
    return total


def seq2seq_score(model, tokenizer, text, answer):
    coded = tokenizer(text, return_offsets_mapping=True)
    ids, (start, end) = coded["input_ids"], answer
    inside = [
        i
        for i, (a, b) in enumerate(coded["offset_mapping"])
        if text[a:b].strip() and max(a, start) < min(b, end)
    ]
    slot, closing = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
    source = torch.tensor([[*ids[: inside[0]], slot, *ids[inside[-1] + 1 :]]])
    fed, total = [tokenizer.pad_token_id, slot], 0.0
    for token in [*(ids[position] for position in inside), closing]:
        logits = model(source, decoder_input_ids=torch.tensor([fed])).logits[0, -1].double()
        total += float(torch.log_softmax(logits, -1)[token])
        fed.append(token)
    return total


SCORES = {"causal": causal_score, "masked": masked_score, "seq2seq": seq2seq_score}


def literal(kind, model, tokenizer):
    """Return (fact, template index) -> whether its object ranks first, one sentence at a time."""
    result = {}
    for fact in TRAINING_FACTS:
        also = [x.object for x in TRAINING_FACTS if x[:2] == fact[:2]]
        known = {x.object for x in TRAINING_FACTS if x.relation == fact.relation}
        rivals = (known | set(OBJECTS[fact.relation])) - set(also)
        if kind == "masked":  # "computer" in one mask slot, "computer scientist" in two
            rivals = {label for label in rivals if not fact.object.startswith(label)}
        for number, template in enumerate(TEXTS[fact.relation]):
            scores = {}
            for label in [fact.object, *rivals]:
                filled = fill(template, fact.subject, label)
                start = len(template.split("[Y]")[0].replace("[X]", fact.subject))
                span = (start, start + len(label))
                scores[label] = SCORES[kind](model, tokenizer, filled.text, span)
            result[fact, number] = scores.pop(fact.object) > max(scores.values())
    return result


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_recall_equals_literal_ranks_among_the_objects_of_the_relation(kind):
    model, tokenizer = half_trained(kind)
    recall_test = RecallTest(TRAINING_FACTS, TEXTS, KIND, OBJECTS)
    expected = literal(kind, model, tokenizer)
    assert len(recall_test.items) == len(expected) == 25
    right = recall_test.right(kind, model, tokenizer, range(25))
    assert {tuple(a): bool(r) for a, r in zip(recall_test.items, right, strict=True)} == expected
    assert 2 <= right.sum() <= 23  # both cases occur
    some = [20, 3, 7]
    assert recall_test.right(kind, model, tokenizer, some).tolist() == right[some].tolist()


def test_facts_are_recalled_when_right_in_every_template():
    recall_test = RecallTest(TRAINING_FACTS, TEXTS, KIND, OBJECTS)
    right = np.ones(25, dtype=bool)
    assert {result["recall"] for result in recall_test.recall(right).values()} == {1.0}
    for number, asked in enumerate(recall_test.items):
        right[number] = asked != (TRAINING_FACTS[4], 1)
    found = recall_test.recall(right)
    assert found["Guinea"] == {"facts": 2, "recall": 0.5}
    assert found["capitals"] == {"facts": 5, "recall": 0.8}
    assert found["jobs"] == {"facts": 5, "recall": 1.0}


def test_objects_of_one_subject_label_do_not_compete():
    recall_test = RecallTest(TRAINING_FACTS, TEXTS, KIND, OBJECTS)
    rivals = recall_test._rivals[TRAINING_FACTS[5]]
    assert rivals == ["chemist", "computer", "computer scientist", "film director", "writer"]
    assert recall_test._rivals[TRAINING_FACTS[6]] == rivals
    with pytest.raises(ValueError, match="1 facts of a kind are not among the training facts"):
        RecallTest(TRAINING_FACTS[1:], TEXTS, KIND, OBJECTS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a function from kind to record and folder, training each kind once."""

    @cache
    def made(kind):
        folder = tmp_path_factory.mktemp("trained") / kind
        return train(kind, folder), folder

    return made


@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_on_until_all_kinds_are_recalled_and_says_so(kind, trained):
    record, folder = trained(kind)
    kinds = {"Guinea": 2, "capitals": 5, "jobs": 5}
    assert record["recall"] == {k: {"facts": n, "recall": 1.0} for k, n in kinds.items()}
    assert json.loads((folder / "control.json").read_text())["recall"] == record["recall"]
    assert record["steps"] < TINY.steps
    assert record["recall_tests"] >= 1


def test_result_is_independent_of_the_step_limit(trained, tmp_path):
    record, folder = trained("causal")
    more = train("causal", tmp_path / "more", steps=6 * TINY.steps)
    assert record["steps"] == more["steps"] < TINY.steps
    weights = [(one / "model.safetensors").read_bytes() for one in (folder, tmp_path / "more")]
    assert weights[0] == weights[1]


def test_too_few_steps_raise_with_kinds_and_recall(tmp_path):
    message = r"control model causal: after 5 steps recall is below 0.97 for .*jobs 0\.\d+ of 5"
    with pytest.raises(RecallError, match=message):
        train("causal", tmp_path / "a", steps=5)
    assert list(tmp_path.iterdir()) == []
