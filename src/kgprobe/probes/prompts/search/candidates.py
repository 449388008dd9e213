"""Candidate tokens of a trigger: named filters with counts (docs/papers/autoprompt.md,
Candidates).

special      special and unused tokens, ids without a token, pieces that are no text
labels       every label token of a classification
gold         every gold object of the training facts, so that a prompt cannot contain the answers
capitalized  tokens that start with an upper-case letter, a simple test for proper nouns
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.search.settings import SearchSettings
from kgprobe.probes.text.encode import byte_level, special_ids

_UNUSED = re.compile(r"[\[<]unused_?\d+[\]>]")
_MARKS = " \u0120\u2581\t\n\r"  # spaces, Ġ, ▁


@dataclass(frozen=True)
class Vocabulary:
    """Every row of the input embedding: raw token, decoded text, text without word markers.

    `raw` is "" if the tokenizer has no token for a row.
    """

    raw: list[str]
    text: list[str]
    surface: list[str]
    special: frozenset[int]
    byte_level: bool

    def __len__(self) -> int:
        return len(self.raw)


def vocabulary_of(loaded: Loaded) -> Vocabulary:
    """Return the vocabulary of a model, for the filters; takes a second for 100,000 tokens."""
    tokenizer = loaded.tokenizer
    rows = int(loaded.model.get_input_embeddings().weight.shape[0])
    raw = [""] * rows
    for token, number in tokenizer.get_vocab().items():
        if number < rows:
            raw[number] = token
    backend = tokenizer.backend_tokenizer
    known = [i for i in range(rows) if raw[i]]
    decoded = backend.decode_batch([[i] for i in known], skip_special_tokens=False)
    text = [""] * rows
    for i, piece in zip(known, decoded, strict=True):
        text[i] = piece
    surface = [_surface(r, t) for r, t in zip(raw, text, strict=True)]
    return Vocabulary(raw, text, surface, frozenset(special_ids(tokenizer)), byte_level(tokenizer))


def _surface(raw: str, text: str) -> str:
    word = text.strip(_MARKS)
    return word.removeprefix("##") if raw.startswith("##") and len(raw) > 2 else word


def filter_candidates(
    vocabulary: Vocabulary,
    settings: SearchSettings,
    labels: Collection[int] = (),
    golds: Collection[str] = (),
    gold_ids: Collection[int] = (),
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return (mask of allowed rows, number of tokens that each filter removed in sequence).

    Raises ValueError, with the counts, if fewer than k tokens are left.
    """
    left = np.ones(len(vocabulary), dtype=bool)
    counts: dict[str, int] = {}
    rules = {
        "beyond_tokenizer": (i for i, raw in enumerate(vocabulary.raw) if not raw),
        "special": _special(vocabulary, settings.special_filter),
        "labels": labels if settings.label_filter else (),
        "gold": _gold(vocabulary, settings.gold_filter, golds, gold_ids),
        "capitalized": _capitalized(vocabulary, settings.capital_filter),
    }
    for name, ids in rules.items():
        before = int(left.sum())
        left[np.array(list(ids), dtype=np.int64)] = False
        counts[name] = before - int(left.sum())
    counts["allowed"] = int(left.sum())
    if counts["allowed"] < settings.candidates:
        shown = ", ".join(f"{name} {number}" for name, number in counts.items())
        raise ValueError(
            f"{counts['allowed']} tokens are left as candidates, {settings.candidates} are needed; "
            f"of {len(vocabulary)} the rules took {shown}"
        )
    return left, counts


def _special(vocabulary: Vocabulary, rule: str) -> Iterable[int]:
    if rule == "off":
        return ()
    ids = set(vocabulary.special)
    if rule == "all":
        for i, (raw, text) in enumerate(zip(vocabulary.raw, vocabulary.text, strict=True)):
            if _UNUSED.fullmatch(raw) or "\ufffd" in text or not text:
                ids.add(i)
    return (i for i in ids if i < len(vocabulary))


def _gold(
    vocabulary: Vocabulary, rule: str, golds: Collection[str], ids: Collection[int]
) -> Iterable[int]:
    """exact: only the ids (released). text: every spelling by case, with or without a space."""
    if rule == "off":
        return ()
    if rule == "exact":
        return ids
    texts = {gold.strip().casefold() for gold in golds} - {""}
    same = (i for i, s in enumerate(vocabulary.surface) if s.casefold() in texts)
    return {*ids, *same}


def _capitalized(vocabulary: Vocabulary, rule: str) -> Iterable[int]:
    """all: all tokens that start with a capital. slow_tokenizer: the filter of the published runs.

    That filter matches byte-level tokens only after a space, so that word-internal capitals pass;
    it takes `##` as the first letter, and ignores tokens of one character.
    """
    if rule == "off":
        return ()
    if rule == "all":
        return (i for i, s in enumerate(vocabulary.surface) if s[:1].isupper())
    pairs = enumerate(zip(vocabulary.raw, vocabulary.text, strict=True))
    if vocabulary.byte_level:
        return (i for i, (r, t) in pairs if len(r) > 1 and t[:1] == " " and t[1:2].isupper())
    return (i for i, (r, t) in pairs if len(r) > 1 and t[:1].isupper())


def spelled_like(vocabulary: Vocabulary, trigger: Collection[int], words: Collection[str]) -> int:
    """Count the trigger tokens spelled like one of `words` (gold objects of dev or test)."""
    texts = {word.strip().casefold() for word in words} - {""}
    return sum(vocabulary.surface[t].casefold() in texts for t in trigger)
