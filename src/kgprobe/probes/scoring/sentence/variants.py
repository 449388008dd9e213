"""Which tokens are masked while one is scored: pseudo-log-likelihoods (docs/scoring.md, Masked).

A variant is a function of this module: a token's place -> the end of what is masked with it, for
every token of every sentence. The table of experiments calls it `sentence-NAME`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.text.encode import ANSWER, NONE, Sentences


def _within_word(sentences: Sentences) -> Ints:
    """The token and the later ones of its word (Kauf and Ivanova 2023)."""
    return _run_ends(_words(sentences), sentences)


def _original(sentences: Sentences) -> Ints:
    """The token alone (Salazar et al. 2020)."""
    return sentences.tokens.places + 1


def _sentence(sentences: Sentences) -> Ints:
    """The token and everything after it, the final special token too."""
    return sentences.tokens.lengths[sentences.tokens.owners]


def _sentence_but_sep(sentences: Sentences) -> Ints:
    """The token and everything after it but the final special token."""
    tokens = sentences.tokens
    last = np.zeros(len(tokens), dtype=np.int64)
    np.maximum.at(last, tokens.owners, np.where(sentences.roles != NONE, tokens.places + 1, 0))
    return np.asarray(last[tokens.owners])


def _answer(sentences: Sentences) -> Ints:
    """Within the answer the token and the later ones of the answer; else of its word."""
    inside = sentences.roles == ANSWER
    answers = _run_ends(inside.astype(np.int64), sentences)
    return np.where(inside, answers, _within_word(sentences))


#: of masked models, by name in the table of experiments; the first is the default
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
    """Row i masks the tokens position[i]:end[i] of a sentence and is read at position[i].

    `flat` is the token's index among all tokens of all sentences.
    """

    sentence: Ints
    position: Ints
    end: Ints
    flat: Ints


def rows(sentences: Sentences, variant: str, answer_only: bool = False) -> MaskedRows:
    """One row for every token with a role (with the role of the answer, for `answer_only`).

    Raises ValueError when a variant needs words and the tokenizer does not give them.
    """
    tokens = sentences.tokens
    wanted = sentences.roles == ANSWER if answer_only else sentences.roles != NONE
    flat = np.flatnonzero(wanted)
    try:
        end = VARIANTS[variant](sentences)
    except _WordsError:
        raise ValueError(
            f"variant {variant} needs words, which the tokenizer does not tell"
        ) from None
    return MaskedRows(tokens.owners[flat], tokens.places[flat], end[flat], flat)


class _WordsError(ValueError):
    """A variant needs words that the tokenizer does not give."""


def _words(sentences: Sentences) -> Ints:
    """The word of every token; tokens without a role may have none."""
    if ((sentences.words < 0) & (sentences.roles != NONE)).any():
        raise _WordsError
    return sentences.words


def _run_ends(labels: Ints, sentences: Sentences) -> Ints:
    """For every token the place after the last of the run of equal labels that it stands in."""
    owners, places = sentences.tokens.owners, sentences.tokens.places
    if not len(labels):
        return places
    fresh = (labels[1:] != labels[:-1]) | (owners[1:] != owners[:-1])
    starts = np.concatenate([[0], np.flatnonzero(fresh) + 1, [len(labels)]])
    run = np.searchsorted(starts, np.arange(len(labels)), side="right") - 1
    last = starts[run + 1] - 1
    return np.asarray(places[last] + 1)
