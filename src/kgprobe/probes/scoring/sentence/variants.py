"""Tokens that are masked while one is scored: pseudo-log-likelihoods (docs/scoring.md, Masked).

A variant is a function of this module that returns, for every token of every sentence, the end of
the span that is masked with it. The table of experiments calls it `sentence-NAME`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.text.encode import ANSWER, NONE, Sentences


def _within_word(sentences: Sentences) -> Ints:
    """Mask the token and the later ones of its word (Kauf and Ivanova 2023)."""
    return _run_ends(sentences.words, sentences)


def _original(sentences: Sentences) -> Ints:
    """Mask only the token (Salazar et al. 2020)."""
    return sentences.tokens.places + 1


def _sentence(sentences: Sentences) -> Ints:
    """Mask the token and everything after it, including the final special token."""
    return sentences.tokens.lengths[sentences.tokens.owners]


def _sentence_but_sep(sentences: Sentences) -> Ints:
    """Mask the token and everything after it except the final special token."""
    tokens = sentences.tokens
    last = np.zeros(len(tokens), dtype=np.int64)
    np.maximum.at(last, tokens.owners, np.where(sentences.roles != NONE, tokens.places + 1, 0))
    return np.asarray(last[tokens.owners])


def _answer(sentences: Sentences) -> Ints:
    """In the answer, mask the token and the later ones of the answer; elsewhere, of its word."""
    inside = sentences.roles == ANSWER
    answers = _run_ends(inside.astype(np.int64), sentences)
    return np.where(inside, answers, _within_word(sentences))


#: variants of masked models, by name in the table of experiments; the first is the default
VARIANTS: Mapping[str, Callable[[Sentences], Ints]] = {
    "within_word_l2r": _within_word,
    "original": _original,
    "sentence_l2r": _sentence,
    "sentence_l2r_keep_sep": _sentence_but_sep,
    "answer_l2r+word_l2r": _answer,
}
DEFAULT = next(iter(VARIANTS))


@dataclass(frozen=True)
class MaskedRows:
    """Row i masks the tokens position[i]:end[i] of a sentence and is scored at position[i].

    `flat` is the token's index among all tokens of all sentences.
    """

    sentence: Ints
    position: Ints
    end: Ints
    flat: Ints


def rows(sentences: Sentences, variant: str, answer_only: bool = False) -> MaskedRows:
    """Return one row for every token with a role (for `answer_only`, with the answer's role).

    Raises ValueError if a variant needs words and the tokenizer does not provide them.
    """
    tokens = sentences.tokens
    wanted = sentences.roles == ANSWER if answer_only else sentences.roles != NONE
    flat = np.flatnonzero(wanted)
    # only tokens without a role may have no word
    is_lacking = ((sentences.words < 0) & (sentences.roles != NONE)).any()
    if is_lacking and VARIANTS[variant] in (_within_word, _answer):
        raise ValueError(f"variant {variant} needs words, which the tokenizer does not tell")
    end = VARIANTS[variant](sentences)
    return MaskedRows(tokens.owners[flat], tokens.places[flat], end[flat], flat)


def _run_ends(labels: Ints, sentences: Sentences) -> Ints:
    """For every token, return the end (exclusive) of the run of equal labels that contains it."""
    owners, places = sentences.tokens.owners, sentences.tokens.places
    if not len(labels):
        return places
    fresh = (labels[1:] != labels[:-1]) | (owners[1:] != owners[:-1])
    starts = np.concatenate([[0], np.flatnonzero(fresh) + 1, [len(labels)]])
    run = np.searchsorted(starts, np.arange(len(labels)), side="right") - 1
    last = starts[run + 1] - 1
    return np.asarray(places[last] + 1)
