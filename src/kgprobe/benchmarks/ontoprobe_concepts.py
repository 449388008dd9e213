"""An ontology in words, and the rows of the memorising tasks: what both origins are brought to."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kgprobe.benchmarks import ontoprobe_text as words

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

    def class_labels(self) -> list[str]:
        """Class candidates: label, then superclasses, of every class; normalised, once each."""
        return _once(words.norm(n) for c in self.classes for n in (c.label, *c.chain))

    def property_labels(self) -> list[str]:
        """Property candidates: label, then superproperties, of every property."""
        return _once(words.norm(n) for p in self.properties for n in (p.label, *p.above))

    def pattern_labels(self) -> list[str]:
        """Pattern candidates, in the same order."""
        named = [n for p in self.properties for n in (p.label, *p.above)]
        return _once(words.bare(self.patterns[n]) for n in named if n in self.patterns)


@dataclass(frozen=True)
class Row:
    """One row of a memorising task. `where` names file and line for errors."""

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


@dataclass
class Taken:
    """Rows of all tasks, the ontology they come from, and (task, step, kept) of their choice."""

    concepts: Concepts
    rows: list[Row]
    steps: list[tuple[str, str, int]] = field(default_factory=list)


def roles(count: int, task: str, where: str, train: int = 10, dev: int = 10) -> list[str]:
    """The part of each of `count` rows in order: `train` rows, `dev` rows, the rest.

    Raises ValueError when fewer than ten rows would be left for the test.
    """
    if count < train + dev + 10:
        raise ValueError(
            f"{where}: task {task} has {count} rows; {train} for training, {dev} for "
            "choosing and at least 10 for testing are needed: take a larger ontology, or a smaller "
            "ontoprobe.switches.split"
        )
    return ["train"] * train + ["dev"] * dev + ["test"] * (count - train - dev)


def _once(labels: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(labels))
