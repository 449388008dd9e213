"""Sentences with marked entities, for the relation extractor: words, mentions, pairs.

    Ada Lovelace was born in London , England .
    ------------             ------   -------     mentions; pairs (Ada Lovelace, London), ...

No entity linker is at hand: a mention is the longest run of words that is a known label (subjects,
objects and surfaces of training facts), or a run of capitalized words.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+|[^\w\s]")
#: words that are capitalized for standing first, and start no mention
_OPENING = frozenset(
    "the a an in on at he she it they his her its their this that these those as after before "
    "during from for by with when while and but or of to is was both".split()
)
#: pairs of a sentence that are read together (Sorokin and Gurevych 2017)
PAIRS = 7
#: longest label that is looked up, in words
LONGEST = 8


@dataclass(frozen=True)
class WordSpan:
    """Words start:end of a sentence, and the text that they are."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Marked:
    """A sentence with the mentions of its subject and of what might be the object."""

    words: tuple[str, ...]
    subject: WordSpan
    others: tuple[WordSpan, ...]


class LabelIndex:
    """Known labels as sequences of words, case ignored."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._known = {tuple(casefold_words(label)) for label in labels} - {()}

    def __contains__(self, words: Sequence[str]) -> bool:
        return tuple(words) in self._known


def words_of(text: str) -> list[tuple[str, int, int]]:
    """(word, start, end) of every word and punctuation mark."""
    return [(m.group(), m.start(), m.end()) for m in _WORD.finditer(text)]


def casefold_words(text: str) -> list[str]:
    """The words of a text with case ignored."""
    return [word.casefold() for word, _, _ in words_of(text)]


def folded(text: str) -> str:
    """The words of a text with case ignored, as one text."""
    return " ".join(casefold_words(text))


def mark_mentions(text: str, subject: str, labels: LabelIndex) -> Marked | None:
    """The sentence with its mentions; None where the subject or any other mention is missing.

    The subject is where its label stands, case ignored; the others keep clear of it.
    """
    words = words_of(text)
    lower = [word.casefold() for word, _, _ in words]
    place = find(lower, casefold_words(subject))
    if place is None:
        return None
    span = WordSpan(*place, text[words[place[0]][1] : words[place[1] - 1][2]])
    others = []
    position = 0
    while position < len(words):
        if span.start <= position < span.end:
            position = span.end
            continue
        end = _end(words, lower, position, span, labels)
        if end > position:
            others.append(WordSpan(position, end, text[words[position][1] : words[end - 1][2]]))
        position = max(end, position + 1)
    if not others:
        return None
    return Marked(tuple(word for word, _, _ in words), span, tuple(others))


def find(words: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    """(start, end) of the first place where `wanted` stands in `words`; None if nowhere."""
    size = len(wanted)
    for start in range(len(words) - size + 1 if size else 0):
        if list(words[start : start + size]) == list(wanted):
            return start, start + size
    return None


def nearest(sentence: Marked, pairs: int = PAIRS) -> list[list[WordSpan]]:
    """The other mentions in groups of at most `pairs`, the nearest to the subject first."""
    middle = sentence.subject.start + sentence.subject.end
    order = sorted(sentence.others, key=lambda m: (abs(m.start + m.end - middle), m.start))
    return [order[i : i + pairs] for i in range(0, len(order), pairs)]


def relations_of(facts: Iterable[Mapping[str, object]]) -> dict[tuple[str, str], str]:
    """(subject, object) in folded words -> relation, for labels and surfaces of training facts.

    Where two relations hold between a pair, the first by name.
    """
    relations: dict[tuple[str, str], str] = {}
    for fact in sorted(facts, key=lambda f: str(f["group"])):
        for name in [fact["label"], *fact["surfaces"]]:  # type: ignore[misc]
            pair = folded(str(fact["subject"])), folded(str(name))
            relations.setdefault(pair, str(fact["group"]))
    return relations


def _end(
    words: Sequence[tuple[str, int, int]],
    lower: Sequence[str],
    start: int,
    subject: WordSpan,
    labels: LabelIndex,
) -> int:
    """End of the longest mention that starts at `start`, or `start` where none does."""
    bound = subject.start if start < subject.start else len(words)
    run = start
    if lower[start] not in _OPENING:
        while run < bound and words[run][0][:1].isupper():
            run += 1
    for end in range(min(start + LONGEST, bound), start, -1):
        if end > run and lower[start:end] in labels:
            return end
    return run
