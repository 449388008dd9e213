"""The relation extractor: mentions, the network against a literal version, and a toy relation."""

import numpy as np
import pytest
import torch

from kgprobe.probes.baselines.relation_lstm import (
    Network,
    RelationLstmSettings,
    SentenceExample,
    _batch,
    answer,
    fit,
    label_words,
    mark_mentions,
    nearest,
    vocabulary,
)
from kgprobe.schema import OUTCOMES, check
from tests.unit.prompt_examples import examples

LABELS = label_words(["guitar", "New York City", "Lyon"])
TEXT = "In Paris, Ada Lovelace of New York City played the guitar and left."


def test_mentions_are_known_labels_and_runs_of_capitals():
    found = mark_mentions(TEXT, "ada lovelace", LABELS)
    assert found.subject.text == "Ada Lovelace"
    assert [m.text for m in found.others] == ["Paris", "New York City", "guitar"]
    # the nearest ones first
    assert [[m.text for m in part] for part in nearest(found, 2)] == [
        ["Paris", "New York City"],
        ["guitar"],
    ]


def test_a_sentence_without_subject_or_without_any_other_is_left_out():
    assert mark_mentions(TEXT, "Charles Babbage", LABELS) is None
    assert mark_mentions("Ada Lovelace left.", "Ada Lovelace", LABELS) is None


def literal(network, fact, words):
    """Return the logits of one sentence, pair by pair, without padding, packing or masks."""
    ids, roles, lengths, _, _ = _batch([fact], words)
    read = []
    for row in range(len(ids)):
        given = torch.cat([network.words(ids[row]), network.roles(roles[row])], -1)
        states, _ = network.reader(given[: lengths[row]][None])
        half = network.reader.hidden_size
        read.append(torch.cat([states[0, -1, :half], states[0, 0, half:]]))
    logits = []
    for own in range(len(read)):
        others = [r for place, r in enumerate(read) if place != own]
        context = torch.zeros_like(read[own])
        if others:
            fits = torch.stack([read[own] @ network.attention.weight @ r for r in others])
            # grouped @ attention(grouped).T is own . (A other)
            context = (fits.softmax(0)[:, None] * torch.stack(others)).sum(0)
        logits.append(network.output(torch.cat([read[own], context])))
    return torch.stack(logits)


def test_a_batch_of_sentences_gives_what_each_pair_gives_alone():
    texts = [
        TEXT,
        "Ada Lovelace saw Lyon.",
        "It was in Rome that Ada Lovelace met Sam, Max and Jo.",
    ]
    sentences = [mark_mentions(text, "Ada Lovelace", LABELS) for text in texts]
    training_facts = [SentenceExample(s, s.others, [0] * len(s.others)) for s in sentences]
    words = vocabulary(sentences, 1)
    torch.manual_seed(0)
    network = Network(len(words) + 4, 3, RelationLstmSettings(width=6, hidden=5)).double().eval()
    together = network(*_batch(training_facts, words)[:4])
    apart = torch.cat([literal(network, fact, words) for fact in training_facts])
    assert torch.allclose(together, apart, atol=1e-12)


PLACES = ["Paris", "Rome", "Lyon", "Oslo", "Bern", "Kyiv"]
NAMES = ["Ada", "Max", "Jo", "Sam", "Eva", "Tom", "Ina", "Kai"]


def world(split, names):
    rows = []
    for n, name in enumerate(names):
        for p, place in enumerate(PLACES):
            other = PLACES[(p + 1 + n % 3) % len(PLACES)]
            text = f"{name} Li{p} was born in {place} and died in {other} ."
            for group, label in (("P19", place), ("P20", other)):
                rows.append(
                    {
                        "group": group, "split": split, "label": label, "surfaces": [label],
                        "fact": f"{group}-{name}{p}",
                        "fields": {"context": text, "sub": f"{name} Li{p}"},
                    }
                )  # fmt: skip
    return rows


def test_it_learns_two_relations_and_gives_the_same_answers_again():
    rows = examples(world("train", NAMES) + world("test", ["Una", "Leo"]))
    settings = RelationLstmSettings(width=16, hidden=16, epochs=12, rate=5e-3)
    found = answer(fit(rows, settings), rows)
    check(found, OUTCOMES)
    right = (found["best"] == 1).mean()
    assert right > 0.9  # one of two positions is right: guessing gives one half
    assert answer(fit(rows, settings), rows).equals(found)


def test_the_most_confident_edge_of_all_sentences_answers_for_the_fact():
    rows = world("train", NAMES)
    test = world("test", ["Una"])[:1]
    silent = {**test[0], "fields": {"context": "Nobody was there.", "sub": "Una Li0"}}
    table = examples([*rows, *test, silent, {**silent, "fact": "other"}])
    trained = fit(table, RelationLstmSettings(width=16, hidden=16, epochs=12, rate=5e-3))
    found = answer(trained, table)
    # the sentence without entities has its fact's answer; a fact without sentences has none
    assert found["answer"].to_list() == ["Paris", "Paris", ""]
    assert found["best"].to_list() == [1, 1, None]
    assert trained.counts["test_left_out"] == 2


def test_missing_facts_are_reported():
    nothing = examples([{"split": "train", "label": "x", "fields": {"context": "a", "sub": "b"}}])
    with pytest.raises(ValueError, match="both entities"):
        fit(nothing, RelationLstmSettings())


def test_probabilities_do_not_depend_on_the_global_generator():
    rows = examples(world("train", NAMES[:3]))
    settings = RelationLstmSettings(width=4, hidden=4, epochs=1)
    torch.manual_seed(1)
    first = fit(rows, settings).losses
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    assert fit(rows, settings).losses == first
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.isfinite(first).all()
