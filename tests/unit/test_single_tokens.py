"""Single-token words, for tokenizers of every kind."""

import pytest

from kgprobe.probes.text.prompts import is_single
from tools.controls.tokens import train_tokenizer

LABELS = ["Paris", "London"] * 40 + ["of"] * 40
TEXTS = ["the capital of [X] is [Y]."]


@pytest.mark.parametrize("kind", ["masked", "causal", "seq2seq"])
def test_a_word_counts_in_the_form_that_it_has_within_a_sentence(kind):
    tokenizer = train_tokenizer(kind, LABELS, TEXTS, 400, 32)
    assert is_single(tokenizer, "capital"), "a word of the templates stays whole"
    assert not is_single(tokenizer, "capital of"), "two words are two tokens"
    assert not is_single(tokenizer, "xylophonist")
    assert not is_single(tokenizer, "\u4e2d"), "unknown letters are no token of their own"
