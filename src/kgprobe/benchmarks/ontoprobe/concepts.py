"""An ontology in words: labels, clauses of domain and range, premises (sec. 3; appendix), and the
rows of the memorizing tasks, which both origins are brought to.
"""

import re
import unicodedata
from dataclasses import dataclass, field

from kgprobe.templates import ANSWER, SUBJECT, parse

#: Sentence patterns that the release has wrong: employer is inverted, a word misspelt.
CORRECTED = {
    "[X] is an employer of [Y] .": "[X] is employed by [Y] .",
    "[X]'s offical language is [Y] .": "[X]'s official language is [Y] .",
}


def corrected(text: str, switch: str) -> str:
    """A sentence pattern of the release under the switch `patterns`.

    >>> corrected("[X] is an employer of [Y] .", "corrected")
    '[X] is employed by [Y] .'
    """
    return CORRECTED.get(text, text) if switch == "corrected" else text


#: The paper prints its own clauses for the pattern of "member of sports team" (Table 3).
PLAYED = "[X] played for [Y] ."
#: (task, switch sco_m2) -> manual templates m1, m2, m3
TEMPLATES: dict[str, tuple[str, ...]] = {
    "TP": ("[X] is a [Y] .", "[X] has class [Y] .", "[X] is a particular [Y] ."),
    "SCO": ("[X] is a [Y] .", "[X] has superclass [Y] .", "[X] is a particular [Y] ."),
    "SPO": ("[X] implies [Y] .",),
    "DM": ("One has to be a particular [Y] [X]",),
    "RG": ("One has to be a particular [Y] [X]",),
}


def norm(label: str) -> str:
    """The label with `-`, `(`, `)` and `/` as spaces, white space collapsed.

    >>> norm("director / manager")
    'director manager'
    """
    return " ".join(re.sub(r"[-()/]", " ", label).split())


def name_of(label: str) -> str:
    """What labels that read alike have in common: they may differ in case, symbols, and in how
    Unicode composes a letter.

    >>> name_of("Film-maker") == name_of("film maker")
    True
    """
    return unicodedata.normalize("NFC", norm(label)).casefold()


def ascii_drop(label: str) -> str:
    """The label without its letters beyond ASCII, as the release writes names: spaces stay.

    >>> ascii_drop("Château de Frønsbourg"), ascii_drop("Dáire Ó Baoill")
    ('Chteau de Frnsbourg', 'Dire  Baoill')
    """
    composed = unicodedata.normalize("NFC", label)
    return "".join(c for c in composed if ord(c) < 128)


def subject(label: str, upper_first: str, symbols: bool) -> str:
    """The subject as it stands in a sentence, which upper-cases its first letter. `upper_first`
    lower_rest: all other letters become lower, and with `symbols` (task TP) the four symbols become
    spaces: what the released code does, and what destroys names in cased models."""
    if upper_first == "keep_rest":
        return label
    shown = re.sub(r"[-()/]", " ", label) if symbols else label
    return shown[:1].upper() + shown[1:].lower()


def article(label: str, rule: str = "by_letter") -> str:
    """The label after "a" or "an"; `always_a` is what the released code gives in rdfs2 and rdfs3.

    >>> article("athlete"), article("athlete", "always_a")
    ('an athlete', 'a athlete')
    """
    vowel = label[:1].lower() in set("aeiou")
    return f"{'an' if vowel and rule == 'by_letter' else 'a'} {label}"


def bare(pattern: str) -> str:
    """A sentence pattern as a candidate between two names.

    >>> bare("[X]'s child is [Y] .")
    "'s child is"
    """
    return pattern.strip("[]XY .")


def noun(pattern: str) -> str | None:
    """What X has, of a pattern "[X]'s ... is [Y]" (or contain); None for other patterns."""
    match = re.match(r"\[X\]'s (.*?) ?(?:\bis|contain) ", pattern)
    return match[1] if match else None


def domain_clause(pattern: str, range_label: str | None, phrasing: str) -> str:
    """What one has or does whose class is asked for: "if one has composer ." (`phrasing` paper: "to
    have composer ."). `phrasing` released: a range label that begins with a vowel is first deleted
    from the pattern, which leaves architect without its word; repaired: it is not."""
    if phrasing == "paper" and pattern == PLAYED:
        return "to be a player at a sports team ."
    if phrasing == "released" and range_label and range_label[0].lower() in set("aeiou"):
        pattern = pattern.replace(range_label, "")
    name = noun(pattern)
    if name is not None:
        return f"to have {name} ." if phrasing == "paper" else f"if one has {name} ."
    other = article(range_label) if range_label else "something"
    return "if one " + parse(pattern.removeprefix("[X] ")).filled({ANSWER: other}).text


def range_clause(pattern: str, domain_label: str | None, phrasing: str) -> str:
    """What somebody has or does with the one whose class is asked for."""
    if phrasing == "paper" and pattern == PLAYED:
        return "to have a player at that ."
    owner = article(domain_label) if domain_label else "something"
    name = noun(pattern)
    if name is not None and re.search(r"(?:\bis|contain) \[Y\]", pattern):
        return f"to be {name} ." if phrasing == "paper" else f"if one is {owner}'s {name} ."
    return "if " + parse(pattern).filled({SUBJECT: owner, ANSWER: "that"}).text


TASKS = ("TP", "SCO", "SPO", "DM", "RG")
#: what a task's candidates are
SET_OF = {"TP": "class", "SCO": "class", "SPO": "property", "DM": "class", "RG": "class"}


@dataclass(frozen=True)
class Class:
    """A class: superclass labels finest first, labels of its sampled instances."""

    id: str
    label: str
    chain: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Property:
    """A property: pattern with [X] and [Y], domain, range, superproperties finest first."""

    id: str
    label: str
    pattern: str | None
    domain: str | None = None
    range: str | None = None
    above: tuple[str, ...] = ()


@dataclass(frozen=True)
class Concepts:
    """Classes and properties in order; `patterns`: labels, of superproperties too, -> pattern."""

    classes: tuple[Class, ...]
    properties: tuple[Property, ...]
    patterns: dict[str, str]


@dataclass(frozen=True)
class TaskRow:
    """One row of a memorizing task. `where` names file and line for errors."""

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
        """Where the row stands, and what it is."""
        return f"{self.where}: {self.task} row {self.row} ({self.subject!r})"


@dataclass
class ConceptRows:
    """Rows of all tasks, the ontology they come from, and (task, step, kept) of their choice."""

    concepts: Concepts
    rows: list[TaskRow]
    steps: list[tuple[str, str, int]] = field(default_factory=list)


def roles(count: int, task: str, where: str, train: int = 10, dev: int = 10) -> list[str]:
    """The part of each of `count` rows in order: `train` rows, `dev` rows, the rest, of which at
    least ten are wanted."""
    if count < train + dev + 10:
        raise ValueError(
            f"{where}: task {task} has {count} rows; {train} for training, {dev} for "
            "choosing and at least 10 for testing are needed: take a larger ontology, or a smaller "
            "ontoprobe.switches.split"
        )
    return ["train"] * train + ["dev"] * dev + ["test"] * (count - train - dev)
