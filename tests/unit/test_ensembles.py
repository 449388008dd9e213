"""Ensembles of wordings against sums written out, the choice by dev facts, words at a place."""

import numpy as np
import pytest
import torch

from kgprobe.metrics.ranking import tie_range
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.wordings.ensembles import Ensembles, answerable, word_ids, work
from kgprobe.probes.prompts.wordings.published import PublishedTemplate, usable
from kgprobe.schema import OUTCOMES, check
from kgprobe.templates import Template
from tests.unit.prompt_examples import examples
from tests.unit.tiny_models import tiny

WORDINGS = [
    PublishedTemplate("[X] is the capital of [Y] .", 0.7),
    PublishedTemplate("The country where [X] lies is [Y]", 0.2),
    PublishedTemplate("[Y] is where [X] stands", 0.1),
]
CAPITALS = {"Paris": "France", "Rome": "Italy", "Niger": "Africa", "Italy": "Paris"}


def facts(split="test"):
    return examples(
        [
            {"group": "P36", "split": split, "label": label, "fields": {"sub": sub}}
            for sub, label in CAPITALS.items()
        ]
    )


def literal(loaded, text, words):
    """log p of every word at [MASK] (or next, for causal models), one whole prompt at a time."""
    tokenizer = loaded.tokenizer
    ids = tokenizer(text.replace("[P]", tokenizer.mask_token or ""))["input_ids"]
    if loaded.spec.kind == "causal":
        ids = tokenizer(text.replace(" [P]", ""))["input_ids"]
        at = len(ids) - 1
    else:
        at = ids.index(tokenizer.mask_token_id)
    logits = loaded.model(torch.tensor([ids])).logits[0, at]
    own = logits.log_softmax(-1)
    blank = "" if loaded.spec.model == "bert" or text.startswith("[P]") else " "
    tokens = [tokenizer(blank + word, add_special_tokens=False)["input_ids"] for word in words]
    assert all(len(token) == 1 for token in tokens)
    return np.array([float(own[token[0]]) for token in tokens])


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_an_ensemble_is_the_weighted_sum_of_its_wordings(name):
    loaded = tiny(name)
    predictor = Predictor(loaded)
    words = answerable(loaded, sorted({*CAPITALS, *CAPITALS.values()}))
    assert len(words) >= 3
    used = usable("P36", WORDINGS, loaded.spec.kind)
    assert len(used.wordings) == (3 if name == "bert" else 2)
    table = facts()
    found = Ensembles(predictor, words).answer("lpaqa", table, {"P36": used.wordings}, ["test"])
    check(found, OUTCOMES)
    for row, (sub, label) in zip(found.iter_rows(named=True), CAPITALS.items(), strict=True):
        total = np.zeros(len(words))
        for wording in used.wordings:
            text = wording.text.replace("[X]", sub).replace("[Y]", "[P]")
            total += wording.weight * literal(loaded, text, words)
        assert row["answer"] == words[int(total.argmax())]
        if label in words:
            gold = words.index(label)
            assert row["logprob"] == pytest.approx(total[gold], abs=1e-5)
            assert (row["best"], row["worst"]) == tie_range(total, gold)
    assert work(table, ["test"], {"P36": used.wordings}) == 4 * len(used.wordings)


def test_one_wording_alone_and_with_a_sentence_in_front():
    loaded = tiny("bert")
    words = answerable(loaded, ["France", "Italy", "Paris"])
    rows = examples(
        [{"group": "P36", "label": "Italy", "fields": {"sent": "Rome .", "sub": "Rome"}}]
    )
    own = {"P36": [PublishedTemplate("[X] lies in [Y] .")]}
    found = Ensembles(Predictor(loaded), words, "{sent} ").answer("manual", rows, own, ["test"])
    expected = literal(loaded, "Rome . Rome lies in [P] .", words)
    assert found["logprob"][0] == pytest.approx(expected[words.index("Italy")], abs=1e-5)


def test_relations_without_wordings_have_no_rows():
    loaded = tiny("gpt2")
    words = answerable(loaded, ["France", "Italy"])
    found = Ensembles(Predictor(loaded), words).answer("lpaqa", facts(), {"P36": []}, ["test"])
    assert found.height == 0


def test_the_wording_that_is_best_on_dev_is_taken_to_test():
    loaded = tiny("bert")
    predictor = Predictor(loaded)
    words = answerable(loaded, sorted({*CAPITALS, *CAPITALS.values()}))
    dev, test = facts("dev"), facts("test")
    table = dev.vstack(test)
    ensembles = Ensembles(predictor, words)
    number, values = ensembles.choose(dev, WORDINGS)
    expected = []
    for wording in WORDINGS:
        found = ensembles.answer("x", dev, {"P36": [PublishedTemplate(wording.text)]}, ["dev"])
        ranks = found["best"].drop_nulls()
        assert (found["best"] == found["worst"]).all()
        expected.append((1 / ranks).sum() / found.height)
    assert values == pytest.approx(expected)
    assert number == int(np.argmax(expected))
    frame, record = ensembles.choose_by_relation("manual_chosen", table, {"P36": WORDINGS})
    assert record["P36"]["wording"] == WORDINGS[number].text
    assert record["P36"]["n"] == 4
    best = {"P36": [PublishedTemplate(WORDINGS[number].text)]}
    assert frame.equals(ensembles.answer("manual_chosen", table, best))


def test_words_have_their_blank_form_where_a_text_start_has_none():
    loaded = tiny("roberta")
    words = answerable(loaded, ["France", "Paris", "Burkina Faso", "xyzzy"])
    assert "xyzzy" not in words
    assert "Burkina Faso" not in words
    behind, none = word_ids(loaded, Template.parse("{sub} [P]", "masked"), words)
    first, others = word_ids(loaded, Template.parse("[P] {sub}", "masked"), words)
    tokens = loaded.tokenizer.convert_ids_to_tokens
    assert none == 0
    assert all(token.startswith("\u0120") for token in tokens(behind))
    assert others == sum(token.startswith("\u0120") for token in tokens(first))
    with pytest.raises(ValueError, match="'xyzzy' is no single token"):
        word_ids(loaded, Template.parse("{sub} [P]", "masked"), ["xyzzy"])
