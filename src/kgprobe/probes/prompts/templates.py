"""Filling templates, and which token of a sentence belongs to what (scoring.md, section 2)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TEMPLATE, SUBJECT, ANSWER = 0, 1, 2
PLACEHOLDER = re.compile(r"(\[X\]|\[Y\])")


@dataclass(frozen=True)
class Filled:
    """A sentence and the character spans [start, end) of subject and answer in it."""

    text: str
    subject: tuple[tuple[int, int], ...]
    answer: tuple[tuple[int, int], ...]


def fill(template: str, subject: str, answer: str, upper_first: bool = True) -> Filled:
    """The sentence of a template: [X] becomes the subject, [Y] the answer, in one pass.

    A label that holds a placeholder is not filled again. `upper_first` upper-cases the first
    character alone; where that changes its length ("ß" to "SS"), the spans move along. Raises
    ValueError unless the template has exactly one [X] and one [Y].

    >>> fill("[Y] is the capital of [X].", "France", "paris").text
    'Paris is the capital of France.'
    """
    pieces = PLACEHOLDER.split(template)
    if pieces.count("[X]") != 1 or pieces.count("[Y]") != 1:
        raise ValueError(f"template {template!r}: expected one [X] and one [Y]")
    text, spans = "", {}
    for piece in pieces:
        value = {"[X]": subject, "[Y]": answer}.get(piece, piece)
        if piece in ("[X]", "[Y]"):
            spans[piece] = (len(text), len(text) + len(value))
        text += value
    if upper_first and text:
        first = text[0].upper()
        shift = len(first) - 1
        text = first + text[1:]
        spans = {k: (s + shift * (s > 0), e + shift * (e > 0)) for k, (s, e) in spans.items()}
    return Filled(text, (spans["[X]"],), (spans["[Y]"],))


def roles(filled: Filled, offsets: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int8], int]:
    """Role of every token, and how many tokens straddle two of them.

    `offsets` are the tokens' character spans. A token has the role of what its characters without
    leading white space overlap: answer before subject before template. Index 0 counts like any.
    """
    found = np.zeros(len(offsets), dtype=np.int8)
    straddling = 0
    for index, (start, end) in enumerate(offsets):
        while start < end and filled.text[start].isspace():
            start += 1
        touched = {
            role
            for role, spans in ((ANSWER, filled.answer), (SUBJECT, filled.subject))
            for low, high in spans
            if start < high and end > low
        }
        covered = sum(
            max(0, min(end, high) - max(start, low))
            for spans in (filled.answer, filled.subject)
            for low, high in spans
        )
        straddling += len(touched) > 1 or (bool(touched) and covered < end - start)
        found[index] = max(touched, default=TEMPLATE)
    return found, straddling
