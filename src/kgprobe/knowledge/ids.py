"""Ids as numbers, by which statements are joined, and numbers as the ids that are told.

Wikidata's ids have theirs in them. Those of another graph are numbered in the order of their text,
and the table of these numbers is written beside the graph.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import ibis
import ibis.expr.datatypes as dt
import polars as pl
import pyarrow as pa
from ibis.expr.types import Table

from kgprobe import sampling
from kgprobe.contracts import Contract
from kgprobe.knowledge.engine import SIGN, Engine, keys, signed
from kgprobe.templates import STEP

#: The number of an entity or relation; no rows where ids are Wikidata's.
IDS = Contract(
    "GRAPH_IDS",
    {"kind": pl.String, "number": pl.UInt32, "id": pl.String},
    ("kind", "number"),
    may_be_empty=True,
)
ENTITY, RELATION = "entity", "relation"
#: columns of candidates that hold relations; all others hold entities
RELATIONS = re.compile(r"[pr][1-3]?")
SUBCLASS_OF = "P279"
#: what a number takes in EDGES
MOST = {ENTITY: (1 << 32) - 1, RELATION: (1 << 16) - 1}


class GraphError(ValueError):
    """The graph cannot be made or used as asked; the message says what would be right."""


def decode_ids(column: str, names: Mapping[int, str]) -> pl.Expr:
    """The ids of a column of numbers, all of which `names` has."""
    if not names:
        # polars takes no empty table of replacements
        return pl.col(column).cast(pl.String)
    return pl.col(column).replace_strict(names, return_dtype=pl.String)


@dataclass(frozen=True)
class WikidataIds:
    """Q31 and P36 are 31 and 36."""

    subclass_of = SUBCLASS_OF

    @property
    def two_up(self) -> str:
        """The relation of two steps of `subclass_of`."""
        return f"{SUBCLASS_OF}/{SUBCLASS_OF}"

    def relation(self, number: int) -> str:
        """The id of a relation."""
        return f"P{number}"

    def relations(self, column: str) -> pl.Expr:
        """Ids of a column of relations."""
        return pl.format("P{}", column)

    def numbers(self, names: Collection[str]) -> list[int]:
        """The numbers of ids such as P31. Raises GraphError for ids of another form."""
        if wrong := [name for name in names if not re.fullmatch(r"[PQ]\d+", name)]:
            raise GraphError(f"not Wikidata ids: {wrong}; expected P or Q and a number")
        return [int(name[1:]) for name in names]

    def lacking(self, names: Collection[str]) -> list[str]:
        """Relations of `names` that the graph cannot have."""
        return []

    def templated(self, names: Collection[str]) -> list[int]:
        """The numbers of relations; what is two steps of one is none."""
        return [int(name[1:]) for name in names if "/" not in name]

    def predicates(self, column: str) -> pl.Expr:
        """Numbers of a column of relations; of two steps that of the last."""
        last = pl.col(column).str.split(STEP).list.last()
        return last.str.split("/").list.first().str.slice(1).cast(pl.Int64)

    def entities(self, numbers: Iterable[int]) -> dict[int, str]:
        """number -> id."""
        return {number: f"Q{number}" for number in numbers}

    def entity_numbers(self, names: Iterable[str]) -> dict[str, int]:
        """id -> number; what is no Q-id has none."""
        return {name: int(name[1:]) for name in names if re.fullmatch(r"Q\d+", name)}

    def keyed(self, rows: Table, seed: int, names: Sequence[str], label: str) -> Table:
        """The rows with `_key`, by which is sampled: `sampling.integer_keys` of the numbers."""
        return rows.mutate(_key=keys(rows, seed, names, label))

    def sample(
        self, frame: pl.DataFrame, n: int, seed: int, names: Sequence[str], label: str
    ) -> pl.DataFrame:
        """At most `n` rows by hash of their numbers, in order."""
        return sampling.smallest(frame, n, seed, names, (), label)


@dataclass(frozen=True)
class OwnIds:
    """`table` (kind, number, id) on `engine`; `known`: property of Wikidata -> relations that say
    the same."""

    engine: Engine
    table: Table
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def _relations(self) -> dict[str, int]:
        own = self.table.filter(self.table["kind"] == RELATION).select("id", "number")
        return dict(self.engine.frame(own).sort("number").rows())

    @cached_property
    def _names(self) -> dict[int, str]:
        return {number: name for name, number in self._relations.items()}

    @cached_property
    def _entities(self) -> Table:
        return self.table.filter(self.table["kind"] == ENTITY).select("number", "id")

    @cached_property
    def subclass_of(self) -> str:
        """The first relation of `known` for P279 that the graph has, else P279."""
        own = self.known.get(SUBCLASS_OF, ())
        return next((name for name in own if name in self._relations), SUBCLASS_OF)

    @property
    def two_up(self) -> str:
        """The relation of two steps of `subclass_of`."""
        return f"{self.subclass_of}/{self.subclass_of}"

    def relation(self, number: int) -> str:
        """The id of a relation."""
        return self._names[number]

    def relations(self, column: str) -> pl.Expr:
        """Ids of a column of relations."""
        return decode_ids(column, self._names)

    def numbers(self, names: Collection[str]) -> list[int]:
        """The numbers of relations by their id or by the property of Wikidata that says the same;
        those that the graph lacks have none."""
        found = [one for name in names for one in (name, *self.known.get(name, ()))]
        return [self._relations[one] for one in dict.fromkeys(found) if one in self._relations]

    def lacking(self, names: Collection[str]) -> list[str]:
        """Relations of `names` that the graph has neither by id nor by property."""
        return [name for name in names if not self.numbers([name])]

    def templated(self, names: Collection[str]) -> list[int]:
        """The numbers of relations that the graph has."""
        return [number for name, number in self._relations.items() if name in set(names)]

    def predicates(self, column: str) -> pl.Expr:
        """Numbers of a column of relations; of two steps that of the last."""
        legal = dict(self._relations)
        if self.subclass_of in legal:
            legal[self.two_up] = legal[self.subclass_of]
        last = pl.col(column).str.split(STEP).list.last()
        return last.replace_strict(legal, return_dtype=pl.Int64)

    def entities(self, numbers: Iterable[int]) -> dict[int, str]:
        """number -> id."""
        asked = pl.DataFrame({"number": sorted(set(numbers))}, schema={"number": pl.Int64})
        return dict(self._some(asked).select("number", "id").rows())

    def entity_numbers(self, names: Iterable[str]) -> dict[str, int]:
        """id -> number; what is no id of the graph has none."""
        asked = pl.DataFrame({"id": sorted(set(names))}, schema={"id": pl.String})
        return dict(self._some(asked).select("id", "number").rows())

    def _some(self, asked: pl.DataFrame) -> pl.DataFrame:
        return self.engine.frame(
            self._entities.semi_join(self.engine.table(asked), asked.columns[0])
        )

    def keyed(self, rows: Table, seed: int, names: Sequence[str], label: str) -> Table:
        """The rows with `_key`, by which is sampled: `sampling.keys` of the texts."""
        worded = rows
        for name in names:
            kind = RELATION if RELATIONS.fullmatch(name) else ENTITY
            own = self.table.filter(self.table["kind"] == kind)
            own = own.select(**{f"_{name}": "number", f"_{name}_id": "id"})
            worded = worded.left_join(own, [(name, f"_{name}")])
        parts = [ibis.literal(str(seed)), ibis.literal(label)]
        key = _hashed(ibis.array([*parts, *(worded[f"_{name}_id"] for name in names)]))
        return worded.mutate(_key=key).select(*rows.columns, "_key")

    def sample(
        self, frame: pl.DataFrame, n: int, seed: int, names: Sequence[str], label: str
    ) -> pl.DataFrame:
        """At most `n` rows by hash of their texts, in order."""
        ends = [name for name in names if not RELATIONS.fullmatch(name)]
        known = self.entities(pl.concat([frame[name].cast(pl.Int64) for name in ends]))
        texts = {
            f"_{name}": decode_ids(name, known) if name in ends else self.relations(name)
            for name in names
        }
        chosen = sampling.take(frame.with_columns(**texts), n, seed, list(texts), (), label)
        return chosen.select(frame.columns)


Ids = WikidataIds | OwnIds


def numbered(facts: Table) -> Table:
    """IDS of FACTS: entities and relations from 0 on, in the order of their text."""
    ends = facts.select(id="subject").union(facts.select(id="object"), distinct=True)
    names = {ENTITY: ends, RELATION: facts.select(id="relation").distinct()}
    # one place more than rows before it
    parts = [
        own.select("id", kind=ibis.literal(kind), number=ibis.row_number().over(order_by=own["id"]))
        for kind, own in names.items()
    ]
    return parts[0].union(parts[1])


def check_most(engine: Engine, table: Table) -> None:
    """Raise GraphError where there are more entities or relations than numbers."""
    counts = engine.frame(table.group_by("kind").aggregate(n=table.count()))
    for kind, n in counts.sort("kind").rows():
        if n > MOST[kind] + 1:
            raise GraphError(
                f"{n:,} ids of the kind {kind}; at most {MOST[kind] + 1:,} are numbered"
            )


def _hashes(rows: pa.Array) -> pa.Array:
    made = (sampling.hash_key(int(seed), *parts) for seed, *parts in rows.to_pylist())
    # signed, in the order of the unsigned ones
    return pa.array([signed(key) ^ SIGN for key in made], pa.int64())


_hashed = ibis.udf.scalar.pyarrow(_hashes, signature=((dt.Array(dt.string),), dt.int64))
