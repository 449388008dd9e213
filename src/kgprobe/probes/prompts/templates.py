"""Filling templates, and which token of a sentence belongs to what (scoring.md, section 2)."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Roles of tokens; special tokens have none.
NONE, TEMPLATE, SUBJECT, ANSWER = -1, 0, 1, 2
PLACEHOLDER = re.compile(r"(\[X\]|\[Y\])")
SPACES = np.array([c for c in range(0x3001) if chr(c).isspace()], dtype=np.uint32)


@dataclass(frozen=True, slots=True)
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
    before, between, after, subject_first = _parts(template)
    one, two = (subject, answer) if subject_first else (answer, subject)
    text = f"{before}{one}{between}{two}{after}"
    low = len(before)
    high = low + len(one) + len(between)
    spans = [(low, low + len(one)), (high, high + len(two))]
    if upper_first and text:
        first = text[0].upper()
        if len(first) > 1:
            shift = len(first) - 1
            spans = [(s + shift * (s > 0), e + shift * (e > 0)) for s, e in spans]
        text = first + text[1:]
    own, other = (spans[0], spans[1]) if subject_first else (spans[1], spans[0])
    return Filled(text, (own,), (other,))


@functools.lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[str, str, str, bool]:
    """Text before, between and after the placeholders, and whether [X] is the first of them."""
    pieces = PLACEHOLDER.split(template)
    if sorted(pieces[1::2]) != ["[X]", "[Y]"]:
        raise ValueError(f"template {template!r}: expected one [X] and one [Y]")
    return pieces[0], pieces[2], pieces[4], pieces[1] == "[X]"


def roles(filled: Filled, offsets: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int8], int]:
    """`token_roles` of one sentence."""
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    return token_roles([filled], spans, np.zeros(len(spans), dtype=np.int64))


def token_roles(
    filled: Sequence[Filled], offsets: NDArray[np.int64], owners: NDArray[np.int64]
) -> tuple[NDArray[np.int8], int]:
    """Role of every token (int8), and how many tokens straddle two of them.

    `offsets` (tokens x 2) are character spans in the sentences `filled[owners]`. A token has the
    role of what its characters without leading white space overlap: answer before subject before
    template. Index 0 counts like any.
    """
    low, high = offsets[:, 0].copy(), offsets[:, 1]
    codes = np.frombuffer(
        "".join(f.text for f in filled).encode("utf-32-le", "surrogatepass"), dtype=np.uint32
    )
    sizes = np.array([len(f.text) for f in filled], dtype=np.int64)
    base = (np.cumsum(sizes) - sizes)[owners]
    space = np.isin(codes, SPACES)
    leading = low < high
    while leading.any():
        leading[leading] = space[(base + low)[leading]]
        low += leading
        leading &= low < high
    touched, covered = [], np.zeros(len(low), dtype=np.int64)
    for spans in ([f.answer[0] for f in filled], [f.subject[0] for f in filled]):
        bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)[owners]
        filled_in = bounds[:, 0] < bounds[:, 1]
        touched.append(filled_in & (low < bounds[:, 1]) & (high > bounds[:, 0]))
        covered += np.maximum(np.minimum(high, bounds[:, 1]) - np.maximum(low, bounds[:, 0]), 0)
    answer, subject = touched
    found = np.where(answer, ANSWER, np.where(subject, SUBJECT, TEMPLATE)).astype(np.int8)
    straddling = (answer & subject) | ((answer | subject) & (covered < high - low))
    return found, int(straddling.sum())
