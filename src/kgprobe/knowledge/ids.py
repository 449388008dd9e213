"""Numbers of a graph's relations and entities, which are used in joins, and their ids.

Wikidata's ids contain numbers. Ids of a user-supplied graph are numbered in text order, and the
table of these numbers is written with the graph.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from kgprobe.contracts import Contract

#: The number of an entity or relation; no rows if ids are Wikidata's.
IDS = Contract(
    "GRAPH_IDS",
    {"kind": pl.String, "number": pl.UInt32, "id": pl.String},
    ("kind", "number"),
    may_be_empty=True,
)
ENTITY, RELATION = "entity", "relation"
SUBCLASS_OF = "P279"
#: the largest number that EDGES can hold
LARGEST = {ENTITY: (1 << 32) - 1, RELATION: (1 << 16) - 1}


class GraphError(ValueError):
    """A graph cannot be built or used as requested; the message says what is expected."""


@dataclass(frozen=True)
class RelationNumbers:
    """Numbers and ids of relations: `names` of a user-supplied graph, None for Wikidata's ids.

    `known`: Wikidata property -> equivalent relations of the graph.
    """

    names: Mapping[int, str] | None = None
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in (self.names or {}).items()}

    def name(self, number: int) -> str:
        """Return the id of a relation."""
        return f"P{number}" if self.names is None else self.names[number]

    def number(self, name: str) -> int | None:
        """Return the number of a relation, None if it cannot be in the graph."""
        if self.names is not None:
            return self._numbers.get(name)
        return int(name[1:]) if re.fullmatch(r"[PQ]\d+", name) else None

    def numbers(self, names: Collection[str]) -> list[int]:
        """Return the numbers of relations given by id or by an equivalent Wikidata property,
        without those the graph lacks. Raises GraphError for ids that are not Wikidata's."""
        if self.names is None and (wrong := [n for n in names if self.number(n) is None]):
            raise GraphError(f"not Wikidata ids: {wrong}; expected P or Q and a number")
        every = dict.fromkeys(one for name in names for one in (name, *self.known.get(name, ())))
        return [number for name in every if (number := self.number(name)) is not None]

    def missing(self, names: Collection[str]) -> list[str]:
        """Return the `names` that a user-supplied graph has neither by id nor by `known`."""
        return [name for name in names if not self.numbers([name])]

    @cached_property
    def subclass_of(self) -> str:
        """The first relation equivalent to P279 that the graph has, else P279."""
        same = self.known.get(SUBCLASS_OF, ())
        return next((name for name in same if self.number(name) is not None), SUBCLASS_OF)

    @property
    def two_hop(self) -> str:
        """The name of two steps of `subclass_of`."""
        return f"{self.subclass_of}/{self.subclass_of}"

    def names_of(self, numbers: pl.Series) -> pl.Series:
        """Return the ids for a column of numbers."""
        names = {number: self.name(number) for number in numbers.unique()}
        # polars does not accept an empty table of replacements
        return numbers.replace_strict(names or {0: ""}, return_dtype=pl.String)

    def numbers_of(self, names: pl.Series) -> pl.Series:
        """Return the numbers for a column of ids; `two_hop` has the number of its steps."""
        known = {self.two_hop: self.subclass_of}
        numbers = {name: self.number(known.get(name, name)) for name in names.unique()}
        return names.replace_strict(numbers or {"": 0}, return_dtype=pl.Int64)
