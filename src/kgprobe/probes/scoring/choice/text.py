"""Multiple choice as text: the prompt with lettered options, and matching of generated answers."""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from kgprobe.templates import MASK_SLOT, parse

LETTERS = string.ascii_lowercase
WORD = r"[^\W_]+"
#: Appended to the options for models that continue text.
CUE = "\nAnswer:"
#: A letter alone at the start of an answer: in brackets, before punctuation, or the whole answer.
ALONE = re.compile(r"\W*(?:\(([a-z])\)|([a-z])\)|([a-z])[.:](?=\s|$)|([a-z])\s*$)")


@dataclass(frozen=True)
class ChoiceQuestion:
    """A question, its options in the order of their letters, and the manual prompt with [MASK]."""

    item: str
    question: str
    options: tuple[str, ...]
    stem: str = ""

    def __post_init__(self) -> None:
        if not 2 <= len(self.options) <= len(LETTERS):
            raise ValueError(f"item {self.item}: {len(self.options)} options; 2 to 26 have letters")
        slots = parse(self.stem).slots.count(MASK_SLOT)
        if self.stem and slots != 1:
            raise ValueError(
                f"item {self.item}: {slots} {MASK_SLOT} in {self.stem!r}; expected one, where the "
                "option stands"
            )


@dataclass(frozen=True)
class Chosen:
    """The choice in one scoring mode: option (None: not matched), rule, text, margin.

    `rule` is option, letter, label, none, several or contradiction for an answer, scored or not
    offered for scores; `margin` is the lead of the best score (nats), None without scores.
    """

    item: str
    scoring: str
    chosen: int | None
    rule: str
    text: str = ""
    margin: float | None = None


def lettered(options: Sequence[str]) -> str:
    """List the options as in the released prompts.

    >>> lettered(["lake", "ship"])
    '(a) lake, (b) ship'
    """
    pairs = zip(LETTERS, options, strict=False)
    return ", ".join(f"({letter}) {option}" for letter, option in pairs)


def prompt(choice: ChoiceQuestion) -> str:
    """Return question and options: the message to a chat model."""
    return f"{choice.question} {lettered(choice.options)}"


def read(answer: str, options: Sequence[str]) -> tuple[int | None, str]:
    """Match a generated answer strictly to (option, rule); the option is None if nothing matches.

    `option`: the answer contains exactly one "(x) label". `letter`: it contains none, but begins
    with a letter alone. Not matched are `several` options, a `contradiction` (a letter before
    another option's label), a `label` alone (of exactly one option, without its letter) and `none`.

    >>> read("It is (b) Ship.", ["lake", "ship"])
    (1, 'option')
    >>> read("(b)", ["lake", "ship"])
    (1, 'letter')
    >>> read("a ship", ["lake", "ship"])
    (None, 'label')
    """
    low, labels = _plain(answer), [*map(_plain, options)]
    named = [
        place
        for place, (letter, label) in enumerate(zip(LETTERS, labels, strict=False))
        if _stands(f"({letter}) {label}", low)
    ]
    if len(named) == 1:
        return named[0], "option"
    if named:
        return None, "several"
    match = ALONE.match(low)
    letter = next(group for group in match.groups() if group) if match else ""
    if not match or LETTERS.index(letter) >= len(options):
        return None, "label" if _labels(low, labels) == 1 else "none"
    rest = low[match.end() :].strip(" :.-\"'")
    # of labels that begin with each other, as ship and ship yard, the longest is meant
    first = [o for o in labels if rest.startswith(o) and not rest[len(o) : len(o) + 1].isalnum()]
    if first and max(first, key=len) != labels[LETTERS.index(letter)]:
        return None, "contradiction"
    return LETTERS.index(letter), "letter"


def _plain(text: str) -> str:
    """Normalize a text for comparison: case, spaces, and whether accents are composed."""
    return " ".join(normalize("NFC", text).lower().split())


def _labels(text: str, options: Sequence[str]) -> int:
    """Count options whose labels occur in a text as whole words, except inside a longer label."""
    words = f" {' '.join(re.findall(WORD, text))} "
    count = 0
    for option in sorted(options, key=len, reverse=True):
        phrase = f" {' '.join(re.findall(WORD, option.lower()))} "
        if phrase in words:
            count += 1
            words = words.replace(phrase, " | ")
    return count


def _stands(phrase: str, text: str) -> bool:
    """Return whether a phrase occurs in a text and does not end within a word."""
    ends = [m.end() for m in re.finditer(re.escape(phrase), text)]
    return any(end == len(text) or not text[end].isalnum() for end in ends)
