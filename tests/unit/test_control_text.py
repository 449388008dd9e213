"""Tokenizers and training rows of the control models."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from kgprobe.templates import fill
from tools.controls.rows import (
    IGNORED,
    Siblings,
    TrainingFact,
    batches,
    encode,
    masked_row,
    seq2seq_row,
)
from tools.controls.tokens import SENTINELS, train_tokenizer

LABELS = ["Peru", "Lima", "Côte d'Ivoire", "Washington, D.C.", "iPhone", "São Paulo", "Łódź", "M³"]
TEXTS = ["The capital of [X] is [Y].", "[Y] is the capital of [X]."]
KINDS = ["causal", "masked", "seq2seq"]
TRAINING_FACTS = [
    TrainingFact("P36", "Peru", "Lima"),
    TrainingFact("P36", "Brazil", "São Paulo"),
    TrainingFact("P36", "Poland", "Washington, D.C."),
    TrainingFact("P36", "iPhone", "Łódź"),
]
PRINT = """
from hashlib import sha256
from tools.controls.tokens import train_tokenizer
words = [a + b for a in "KLMNP" for b in ("ari", "ona", "é", "ulu")]
labels = [f"{word} {kind}" for word in words for kind in ("Bay", "Ó")]
for kind in ("causal", "masked", "seq2seq"):
    made = train_tokenizer(kind, labels, ["The bay of [X] is [Y]."], 120, 32)
    print(kind, sha256(made.backend_tokenizer.to_str().encode()).hexdigest())
"""


def tokenizer(kind, labels=LABELS):
    return train_tokenizer(kind, [*labels, "Brazil", "Poland"], TEXTS, 400, 64)


def sentences(kind, made=None):
    return encode(made or tokenizer(kind), TRAINING_FACTS, {"P36": TEXTS})


def digest(made):
    return hashlib.sha256(made.backend_tokenizer.to_str().encode()).hexdigest()


def test_vocabulary_is_identical_across_processes():
    command = [sys.executable, "-c", PRINT]
    runs = {
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    }
    assert len(runs) == 1
    assert len(runs.pop().split()) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_vocabulary_is_independent_of_label_order_and_counts(kind):
    assert digest(tokenizer(kind)) == digest(tokenizer(kind, LABELS[::-1] * 3))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_round_trip_without_unknown_tokens(kind):
    tok = tokenizer(kind)
    for label in LABELS:
        for template in TEXTS:
            text = fill(template, "Peru", label).text
            ids = tok(text)["input_ids"]
            assert tok.unk_token_id is None or tok.unk_token_id not in ids
            back = tok.decode(ids, skip_special_tokens=True)
            assert back.replace(" ", "") == text.replace(" ", "")
            if kind != "masked":  # WordPiece drops the spaces around punctuation
                assert back.strip() == text


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_and_word_ids_cover_the_text(kind):
    tok = tokenizer(kind)
    text = "Côte d'Ivoire is the capital of Washington, D.C.."
    coded = tok(text, return_offsets_mapping=True)
    parts = [text[a:b] for a, b in coded["offset_mapping"]]
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    words = [w for w in coded.word_ids() if w is not None]
    assert words == sorted(words)
    # the template's period is a separate token even after an answer that ends with one
    assert parts[-1 if kind == "causal" else -2] == "."


def test_special_tokens_follow_the_kind():
    masked, causal, seq2seq = (tokenizer(k) for k in ("masked", "causal", "seq2seq"))
    ids = masked("Peru")["input_ids"]
    assert (ids[0], ids[-1]) == (masked.cls_token_id, masked.sep_token_id)
    assert causal("Peru")["input_ids"][0] == causal.bos_token_id
    assert causal("Peru")["input_ids"].count(causal.bos_token_id) == 1
    assert seq2seq("Peru")["input_ids"][-1] == seq2seq.eos_token_id
    for made in (masked, causal, seq2seq):
        assert made.pad_token_id is not None
        assert made.padding_side == "right"


def test_slots_in_text_and_in_tokens_are_identical():
    tok = tokenizer("seq2seq")
    slot = tok.convert_tokens_to_ids(SENTINELS[0])
    for whole in sentences("seq2seq", tok):
        by_ids = [*whole.ids[: whole.answer.start], slot, *whole.ids[whole.answer.stop :]]
        subject = tok.decode(whole.ids[whole.subject]).strip()
        text = fill(TEXTS[whole.group[1]], subject, SENTINELS[0]).text
        assert tok(text)["input_ids"] == by_ids


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_cover_the_tokens_of_the_labels(kind):
    tok = tokenizer(kind)
    for number, result in enumerate(sentences(kind, tok)):
        fact = TRAINING_FACTS[number // 2]
        for part, label in ((result.subject, fact.subject), (result.answer, fact.object)):
            text = tok.decode(result.ids[part]).replace(" ", "")
            assert text.casefold() == label.replace(" ", "").casefold()
        assert result.group == ("P36", number % 2)


def test_masked_rows_mask_the_object_to_its_end_in_slots_of_any_size():
    tok, rng = tokenizer("masked"), np.random.default_rng(0)
    result = sentences("masked", tok)
    siblings, mask = Siblings(result), tok.mask_token_id
    to_end = resized = restored = idle = 0
    for one in result * 250:
        ids, targets = masked_row(one, siblings, mask, rng)
        hidden = targets != IGNORED
        assert (ids[hidden] == mask).all()
        start, rest = one.answer.start, len(one.ids) - one.answer.stop
        slot = slice(start, len(ids) - rest)
        if (ids[slot] == mask).all() and len(ids) != len(one.ids):
            resized += 1  # the object's tokens, truncated to the slot
            asked = targets[slot][hidden[slot]]
            assert asked.tolist() == one.ids[one.answer][: len(asked)].tolist()
            assert len(asked) == min(slot.stop - start, one.answer.stop - start)
        elif len(ids) != len(one.ids) or (targets[hidden] != one.ids[hidden]).any():
            restored += 1  # a wrong object in which one word has to be restored
        else:
            shown = (~hidden[one.answer]).sum()
            to_end += hidden[one.answer][shown:].all() and hidden[one.answer].any()
            idle += not hidden.any()
    assert 0.3 < to_end / 2000 < 0.75
    assert 0.1 < resized / 2000 < 0.3
    assert 0.03 < restored / 2000 < 0.2
    assert idle / 2000 < 0.1


def test_words_are_masked_from_a_piece_to_their_end():
    tok, rng = tokenizer("masked", []), np.random.default_rng(1)
    siblings, mask = Siblings(result := sentences("masked", tok)), tok.mask_token_id
    partly = 0
    for one in result * 80:
        ids, targets = masked_row(one, siblings, mask, rng)
        hidden = targets != IGNORED
        if len(ids) != len(one.ids) or (targets[hidden] != one.ids[hidden]).any():
            continue
        for word in np.unique(one.words[one.words >= 0]):
            pieces = ids[one.words == word] == mask
            assert (np.diff(pieces.astype(int)) >= 0).all()
            partly += pieces.any() and not pieces.all()
    assert partly > 10


def test_seq2seq_rows_are_infilling_examples():
    tok, rng = tokenizer("seq2seq"), np.random.default_rng(0)
    first, second = tok.convert_tokens_to_ids(list(SENTINELS[:2]))
    objects = 0
    for one in sentences("seq2seq", tok) * 50:
        source, target = seq2seq_row(one, (first, second), tok.eos_token_id, rng)
        assert (target[0], target[-2], target[-1]) == (first, second, tok.eos_token_id)
        position = int(np.flatnonzero(source == first)[0])
        rebuilt = np.concatenate([source[:position], target[1:-2], source[position + 1 :]])
        assert (rebuilt == one.ids).all()
        objects += position == one.answer.start and len(target) - 3 == len(one.ids[one.answer])
    assert 0.5 < objects / 400 < 0.7


def test_every_sentence_occurs_once_per_epoch():
    result = sentences("causal") * 8
    feed = batches(result, 10, np.random.default_rng(0))
    for _ in range(2):
        seen: list[int] = []
        while len(seen) < len(result):
            seen += next(feed).tolist()
        assert sorted(seen) == list(range(len(result)))


def test_missing_templates_and_too_long_sentences_raise():
    with pytest.raises(ValueError, match="no template for relation P50"):
        encode(tokenizer("causal"), [TrainingFact("P50", "a", "b")], {"P36": TEXTS})
    short = train_tokenizer("causal", LABELS, TEXTS, 400, 4)
    with pytest.raises(ValueError, match="too many for the model"):
        encode(short, TRAINING_FACTS, {"P36": TEXTS})


@pytest.mark.parametrize("kind", ["gpt", ""])
def test_unknown_kind_raises(kind):
    with pytest.raises(ValueError, match="valid: masked, causal, seq2seq"):
        train_tokenizer(kind, LABELS, TEXTS, 100, 16)
