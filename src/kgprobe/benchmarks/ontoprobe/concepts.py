"""Verbalize an ontology: labels, clauses of domain and range, premises (sec. 3; appendix). Also
defines the rows of the memorizing tasks, common to the released and our own data.
"""

import re
import unicodedata
from dataclasses import dataclass, field

from kgprobe.templates import ANSWER, SUBJECT, parse

#: Corrections of errors in released patterns: employer is inverted, one word is misspelled.
CORRECTED = {
    "[X] is an employer of [Y] .": "[X] is employed by [Y] .",
    "[X]'s offical language is [Y] .": "[X]'s official language is [Y] .",
}


def corrected(text: str, switch: str) -> str:
    """Return a released sentence pattern under the switch `patterns`.

    >>> corrected("[X] is an employer of [Y] .", "corrected")
    '[X] is employed by [Y] .'
    """
    return CORRECTED.get(text, text) if switch == "corrected" else text


#: The paper prints special clauses for the pattern of "member of sports team" (Table 3).
PLAYED = "[X] played for [Y] ."
#: task -> manual templates m1, m2, m3
TEMPLATES: dict[str, tuple[str, ...]] = {
    "TP": ("[X] is a [Y] .", "[X] has class [Y] .", "[X] is a particular [Y] ."),
    "SCO": ("[X] is a [Y] .", "[X] has superclass [Y] .", "[X] is a particular [Y] ."),
    "SPO": ("[X] implies [Y] .",),
    "DM": ("One has to be a particular [Y] [X]",),
    "RG": ("One has to be a particular [Y] [X]",),
}


def norm(label: str) -> str:
    """Return the label with `-`, `(`, `)` and `/` as spaces, and whitespace collapsed.

    >>> norm("director / manager")
    'director manager'
    """
    return " ".join(re.sub(r"[-()/]", " ", label).split())


def name_of(label: str) -> str:
    """Return a key that is equal for labels that differ only in case, symbols, and in how Unicode
    composes letters.

    >>> name_of("Film-maker") == name_of("film maker")
    True
    """
    return unicodedata.normalize("NFC", norm(label)).casefold()


def ascii_drop(label: str) -> str:
    """Remove non-ASCII characters from a label, as the release does: spaces stay.

    >>> ascii_drop("Château de Frønsbourg"), ascii_drop("Dáire Ó Baoill")
    ('Chteau de Frnsbourg', 'Dire  Baoill')
    """
    composed = unicodedata.normalize("NFC", label)
    return "".join(c for c in composed if ord(c) < 128)


def subject(label: str, upper_first: str, symbols: bool) -> str:
    """Return a subject for a sentence, which then upper-cases its first letter. With `upper_first`
    lower_rest, all other letters become lower case, and with `symbols` (task TP) the four symbols
    become spaces, like in the released code; this destroys names for cased models."""
    if upper_first == "keep_rest":
        return label
    shown = re.sub(r"[-()/]", " ", label) if symbols else label
    return shown[:1].upper() + shown[1:].lower()


def article(label: str, rule: str = "by_letter") -> str:
    """Return the label after "a" or "an"; `always_a` as in the released code for rdfs2 and rdfs3.

    >>> article("athlete"), article("athlete", "always_a")
    ('an athlete', 'a athlete')
    """
    vowel = label[:1].lower() in set("aeiou")
    return f"{'an' if vowel and rule == 'by_letter' else 'a'} {label}"


def bare(pattern: str) -> str:
    """Return a sentence pattern as a candidate, the text between its two slots.

    >>> bare("[X]'s child is [Y] .")
    "'s child is"
    """
    return re.sub(r"^[ .]*\[[XY]\]|\[[XY]\][ .]*$", "", pattern).strip(" .")


def noun(pattern: str) -> str | None:
    """Return the noun of a pattern "[X]'s ... is [Y]" (or contain); None for other patterns."""
    match = re.match(r"\[X\]'s (.*?) ?(?:\bis|contain) ", pattern)
    return match[1] if match else None


def domain_clause(pattern: str, range_label: str | None, phrasing: str) -> str:
    """Return the clause of task DM: "if one has composer ." (`phrasing` paper: "to have composer
    ."). With `phrasing` released, a range label that starts with a vowel is first deleted from the
    pattern, so that architect's pattern loses its noun; with repaired it is not."""
    if phrasing == "paper" and pattern == PLAYED:
        return "to be a player at a sports team ."
    if phrasing == "released" and range_label and range_label[0].lower() in set("aeiou"):
        pattern = pattern.replace(range_label, "")
    name = noun(pattern)
    if name is not None:
        return f"to have {name} ." if phrasing == "paper" else f"if one has {name} ."
    other = article(range_label) if range_label else "something"
    return _condition(pattern, "one", other)


def range_clause(pattern: str, domain_label: str | None, phrasing: str) -> str:
    """Return the clause of task RG, about the object of a property."""
    if phrasing == "paper" and pattern == PLAYED:
        return "to have a player at that ."
    owner = article(domain_label) if domain_label else "something"
    name = noun(pattern)
    if name is not None and re.search(r"(?:\bis|contain) \[Y\]", pattern):
        return f"to be {name} ." if phrasing == "paper" else f"if one is {owner}'s {name} ."
    return _condition(pattern, owner, "that")


def _condition(pattern: str, subject: str, answer: str) -> str:
    """Return "if" and the sentence of a pattern, which may begin with a word."""
    text = pattern if pattern.startswith("[") else pattern[:1].lower() + pattern[1:]
    return "if " + parse(text).filled({SUBJECT: subject, ANSWER: answer}).text


TASKS = ("TP", "SCO", "SPO", "DM", "RG")
#: the candidate set of each task
SET_OF = {"TP": "class", "SCO": "class", "SPO": "property", "DM": "class", "RG": "class"}


@dataclass(frozen=True)
class Class:
    """A class: superclass labels from the finest, and labels of its sampled instances."""

    id: str
    label: str
    chain: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Property:
    """A property: pattern with [X] and [Y], domain, range, superproperties from the finest."""

    id: str
    label: str
    pattern: str | None
    domain: str | None = None
    range: str | None = None
    above: tuple[str, ...] = ()


@dataclass(frozen=True)
class Concepts:
    """Classes and properties in order; `patterns`: label (also of superproperties) -> pattern."""

    classes: tuple[Class, ...]
    properties: tuple[Property, ...]
    patterns: dict[str, str]


@dataclass(frozen=True)
class TaskRow:
    """One row of a memorizing task. `where` gives file and line, for errors."""

    task: str
    row: int
    role: str
    id: str
    subject: str
    golds: tuple[str, ...]
    pattern: str | None = None
    depth: int = 0
    popularity: int | None = None
    where: str = ""

    @property
    def title(self) -> str:
        """The row's location, task, number and subject, for messages."""
        return f"{self.where}: {self.task} row {self.row} ({self.subject!r})"


@dataclass
class ConceptRows:
    """Rows of all tasks, their ontology, and (task, step, kept) of their selection."""

    concepts: Concepts
    rows: list[TaskRow]
    steps: list[tuple[str, str, int]] = field(default_factory=list)


def roles(count: int, task: str, where: str, train: int = 10, dev: int = 10) -> list[str]:
    """Return the split of each of `count` rows: `train` rows, then `dev` rows, then test. Raises
    ValueError if fewer than ten test rows are left."""
    if count < train + dev + 10:
        raise ValueError(
            f"{where}: task {task} has {count} rows; {train} for training, {dev} for "
            "choosing and at least 10 for testing are needed: take a larger ontology, or a smaller "
            "ontoprobe.switches.split"
        )
    return ["train"] * train + ["dev"] * dev + ["test"] * (count - train - dev)
