"""Which words are one token for a model, in the form that they take within a sentence, or that [P]
of a template demands.
"""

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.text.encode import refuse_control_tokens
from kgprobe.probes.text.pieces import pieces
from kgprobe.templates import Template


def is_single(tokenizer: Any, word: str) -> bool:
    """Whether `word`, after another word and a blank, is one token (WordPiece, BPE, Unigram)."""
    (ids,) = pieces(tokenizer, [f" {word}"])
    return len(ids) == 1 and (ids[0] != tokenizer.unk_token_id or word == tokenizer.unk_token)


def single_for(specs: Sequence[ModelSpec], words: Sequence[str]) -> list[str]:
    """The `words` that are one token for every model, in their order."""
    left = list(words)
    for spec in specs:
        tokenizer = load_model(spec).tokenizer
        left = [word for word in left if is_single(tokenizer, word)]
    return left


BLANKS = ("\u0120", "\u2581")  # Ġ, ▁


class LabelError(ValueError):
    """A word is not one token; the message lists its pieces and the nearest single tokens."""


def label_pieces(loaded: Loaded, template: Template, words: Sequence[str]) -> list[Ints]:
    """Ids of every word as it would stand at [P]: in its blank form behind a blank.

    Several ids where the word is no single token. Raises ValueError for a special token's name.
    """
    refuse_control_tokens(loaded.tokenizer, words, lambda n: f"label {words[n]!r}")
    lead = " " if template.blank else ""
    rows = pieces(loaded.tokenizer, [lead + word for word in words], template.opens)
    return [np.array(ids, dtype=np.int64) for ids in rows]


def label_token(loaded: Loaded, template: Template, word: str) -> int:
    """The one token that `word` is at [P].

    Raises LabelError for a word of several tokens or none, or with an unknown one.
    """
    (ids,) = label_pieces(loaded, template, [word])
    tokenizer = loaded.tokenizer
    if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
        return int(ids[0])
    shown = " ".join(map(repr, tokenizer.convert_ids_to_tokens(ids.tolist())))
    raise LabelError(
        f"{word!r} is no single token of {loaded.spec.model} at [P] of {template.text!r}: its "
        f"pieces are {shown or 'none'}; nearest single tokens: "
        + (", ".join(_nearest(loaded, template, word)) or "none")
    )


def _nearest(loaded: Loaded, template: Template, word: str) -> list[str]:
    """Words of the vocabulary that are spelled alike, in the form of the place."""
    vocabulary = loaded.tokenizer.get_vocab()
    marked = any(token.startswith(BLANKS) for token in vocabulary)
    tokens = sorted(
        token
        for token in vocabulary
        if not token.startswith("##") and (not marked or token.startswith(BLANKS) == template.blank)
    )
    surfaces = dict.fromkeys(token.lstrip("".join(BLANKS)) for token in tokens)
    return [repr(t) for t in difflib.get_close_matches(word.strip(), list(surfaces), 5, 0.5)]
