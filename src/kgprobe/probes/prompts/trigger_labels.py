"""Words that a prompt may answer with, as single tokens in the form that [P] demands."""

import difflib
from collections.abc import Sequence

import numpy as np

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.trigger_pieces import pieces
from kgprobe.probes.prompts.trigger_template import Template

BLANKS = ("\u0120", "\u2581")  # Ġ, ▁


class LabelError(ValueError):
    """A word is not one token; the message lists its pieces and the nearest single tokens."""


def label_pieces(loaded: Loaded, template: Template, words: Sequence[str]) -> list[Ints]:
    """Ids of every word as it would stand at [P]: in its blank form behind a blank.

    Several ids where the word is no single token.
    """
    lead = " " if template.blank else ""
    found = pieces(loaded.tokenizer, [lead + word for word in words], template.opens)
    return [np.array(ids, dtype=np.int64) for ids in found]


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
    own = sorted(
        token
        for token in vocabulary
        if not token.startswith("##") and (not marked or token.startswith(BLANKS) == template.blank)
    )
    surfaces = dict.fromkeys(token.lstrip("".join(BLANKS)) for token in own)
    return [repr(t) for t in difflib.get_close_matches(word.strip(), list(surfaces), 5, 0.5)]
