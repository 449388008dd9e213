"""Which tokens are masked while one is scored: the pseudo-log-likelihoods (scoring.md, section 4).

original             j                                        (Salazar et al. 2020)
within_word_l2r      j and the later tokens of its word       (Kauf and Ivanova 2023)
sentence_l2r         j and everything after it, the final special token too
sentence_l2r_keep_sep  the same without the final special token
answer_l2r+word_l2r  within the answer: j and the later tokens of the answer; else its word
"""

from dataclasses import dataclass

import numpy as np

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.prompts.templates import ANSWER, NONE
from kgprobe.probes.scoring.encode import Sentences

#: Of masked models; the first is the default.
VARIANTS = (
    "within_word_l2r",
    "original",
    "sentence_l2r",
    "sentence_l2r_keep_sep",
    "answer_l2r+word_l2r",
)


@dataclass(frozen=True)
class Rows:
    """Row i masks the tokens place[i]:end[i] of a sentence and is read at place[i].

    `flat` is the token's index among all tokens of all sentences.
    """

    sentence: Ints
    place: Ints
    end: Ints
    flat: Ints


def rows(sentences: Sentences, variant: str, answer_only: bool = False) -> Rows:
    """One row for every token with a role (with the role of the answer, for `answer_only`).

    Raises ValueError when a variant needs words and the tokenizer does not tell them.
    """
    tokens = sentences.tokens
    owners, places = tokens.owners, tokens.places
    wanted = sentences.roles == ANSWER if answer_only else sentences.roles != NONE
    flat = np.flatnonzero(wanted)
    lengths = tokens.lengths
    if variant == "original":
        end = places + 1
    elif variant == "sentence_l2r":
        end = lengths[owners]
    elif variant == "sentence_l2r_keep_sep":
        last = np.zeros(len(tokens), dtype=np.int64)
        np.maximum.at(last, owners, np.where(sentences.roles != NONE, places + 1, 0))
        end = last[owners]
    else:
        unknown = wanted & (sentences.words < 0)
        if unknown.any():
            raise ValueError(f"variant {variant} needs words, which the tokenizer does not tell")
        end = _run_ends(sentences.words, owners, places)
        if variant == "answer_l2r+word_l2r":
            answers = _run_ends((sentences.roles == ANSWER).astype(np.int64), owners, places)
            end = np.where(sentences.roles == ANSWER, answers, end)
    return Rows(owners[flat], places[flat], end[flat], flat)


def _run_ends(labels: Ints, owners: Ints, places: Ints) -> Ints:
    """For every token the place after the last of the run of equal labels that it stands in."""
    if not len(labels):
        return places
    fresh = (labels[1:] != labels[:-1]) | (owners[1:] != owners[:-1])
    starts = np.concatenate([[0], np.flatnonzero(fresh) + 1, [len(labels)]])
    run = np.searchsorted(starts, np.arange(len(labels)), side="right") - 1
    last = starts[run + 1] - 1
    return places[last] + 1
