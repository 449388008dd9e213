"""Multiple choice in words: the prompt with its lettered options, and the reading of an answer."""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from kgprobe.templates import MASK_SLOT, parse

LETTERS = string.ascii_lowercase
WORD = r"[^\W_]+"
#: Put after the options for models that continue text.
CUE = "\nAnswer:"
#: A letter alone at the start of an answer: in brackets, before a sign, or all that there is.
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
    """What was chosen in one scoring mode: option (None: not readable), rule, text, margin.

    `rule` is option, letter, label, none, several or contradiction for an answer, scored or not
    offered for scores; `margin` the lead of the best score (nat), None without scores.
    """

    item: str
    scoring: str
    chosen: int | None
    rule: str
    text: str = ""
    margin: float | None = None


def lettered(options: Sequence[str]) -> str:
    """The options as the released prompts list them.

    >>> lettered(["lake", "ship"])
    '(a) lake, (b) ship'
    """
    pairs = zip(LETTERS, options, strict=False)
    return ", ".join(f"({letter}) {option}" for letter, option in pairs)


def prompt(choice: ChoiceQuestion) -> str:
    """Question and options: the message to a chat model."""
    return f"{choice.question} {lettered(choice.options)}"


def read(answer: str, options: Sequence[str]) -> tuple[int | None, str]:
    """(option, rule) of a generated answer, strictly; the option is None where none is named.

    `option`: exactly one "(x) label" stands in it. `letter`: none does, but it begins with a letter
    alone. Not readable are `several` options named, a `contradiction` (a letter before another
    option's label), a `label` alone (of exactly one option, without its letter) and `none`.

    >>> read("It is (b) Ship.", ["lake", "ship"])
    (1, 'option')
    >>> read("(b)", ["lake", "ship"])
    (1, 'letter')
    >>> read("a ship", ["lake", "ship"])
    (None, 'label')
    """
    low = " ".join(answer.lower().split())
    named = [
        place
        for place, (letter, option) in enumerate(zip(LETTERS, options, strict=False))
        if _stands(f"({letter}) {' '.join(option.lower().split())}", low)
    ]
    if len(named) == 1:
        return named[0], "option"
    if named:
        return None, "several"
    match = ALONE.match(low)
    letter = next(group for group in match.groups() if group) if match else ""
    if not match or LETTERS.index(letter) >= len(options):
        return None, "label" if _labels(low, options) == 1 else "none"
    rest = low[match.end() :].strip(" :.-\"'")
    others = [o for n, o in enumerate(options) if n != LETTERS.index(letter)]
    if any(_stands(o.lower(), rest) and rest.startswith(o.lower()) for o in others):
        return None, "contradiction"
    return LETTERS.index(letter), "letter"


def _labels(text: str, options: Sequence[str]) -> int:
    """How many options' labels stand in a text as whole words, those inside a longer one aside."""
    words = f" {' '.join(re.findall(WORD, text))} "
    count = 0
    for option in sorted(options, key=len, reverse=True):
        phrase = f" {' '.join(re.findall(WORD, option.lower()))} "
        if phrase in words:
            count += 1
            words = words.replace(phrase, " | ")
    return count


def _stands(phrase: str, text: str) -> bool:
    """Whether a phrase stands in a text and does not end within a word."""
    ends = [m.end() for m in re.finditer(re.escape(phrase), text)]
    return any(end == len(text) or not text[end].isalnum() for end in ends)
