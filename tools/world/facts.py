"""Statements of the embedded graph: the wide facts tables, and the statements that follow from
them.

`read_facts` reads the typed statements; `complete` adds the reverse of symmetric properties and
the inverse statements that properties.tsv requests.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import polars as pl

from tools.world.properties import Property
from tools.world.tables import Report, Row, read_table

INSTANCE_OF, SUBCLASS_OF, SEX, FATHER, MOTHER = "P31", "P279", "P21", "P22", "P25"
MALE, FEMALE = "Q6581097", "Q6581072"
#: Prefix of a typed value -> its rank.
RANKS = {"^": "preferred", "!": "deprecated"}
_TIME = re.compile(r"(-?)(\d{1,4})(?:-(\d\d)-(\d\d))?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("subject", "relation", "object", "kind", "rank", "origin", "text"), pl.String),
}


class Keyed(Protocol):
    """The attributes of an item from which its class is read."""

    @property
    def id(self) -> str: ...

    @property
    def row(self) -> Row: ...


@dataclass(frozen=True)
class Statement:
    """One statement in ids, with the row it comes from."""

    subject: str
    relation: str
    object: str
    kind: str
    rank: str
    origin: str
    text: str
    row: Row

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what identifies a statement."""
        return self.subject, self.relation, self.object, self.kind


def typed_classes(
    entities: Iterable[Keyed], classes: dict[str, Row], items: dict[str, str], report: Report
) -> list[Statement]:
    """Return P31 from the `class` column of the entities, P279 from `subclass of` in
    classes.tsv."""
    rows = [(e.id, e.row, "class", INSTANCE_OF, "class") for e in entities]
    rows += [
        (items[key], row, "subclass of", SUBCLASS_OF, "parent")
        for key, row in classes.items()
        if key in items
    ]
    found = []
    for subject, row, column, relation, origin in rows:
        for text in row.values(column):
            if text in items:
                found.append(
                    Statement(subject, relation, items[text], "item", "normal", origin, text, row)
                )
            else:
                report.unknown(row, column, text, items, "the key of a class or entity")
    return found


def read_facts(
    path: Path, items: dict[str, str], properties: dict[str, Property], report: Report
) -> list[Statement]:
    """Read the statements of one wide table. Headers are labels, ids or unique aliases."""
    names = _header_names(properties)
    columns: dict[str, Property] = {}
    found: list[Statement] = []
    for row in read_table(path, None, report):
        if not columns:
            columns = _columns(row, names, report)
        key = row.text("entity")
        if key not in items:
            report.unknown(row, "entity", key, items, "the key of an entity")
            continue
        for column, prop in columns.items():
            for text in row.values(column):
                statement = _statement(items[key], prop, text, row, column, items, report)
                if statement is not None:
                    found.append(statement)
    return found


def _header_names(properties: dict[str, Property]) -> dict[str, Property]:
    names: dict[str, Property] = {}
    repeated: set[str] = set()
    for prop in properties.values():
        for alias in prop.aliases:
            if alias in names:
                repeated.add(alias)
            names[alias] = prop
    names = {n: p for n, p in names.items() if n not in repeated}
    for prop in properties.values():
        names |= {prop.label: prop, prop.id: prop}
    return names


def _columns(row: Row, names: dict[str, Property], report: Report) -> dict[str, Property]:
    header = list(row.cells)
    place = replace(row, line=0)
    if header[0] != "entity":
        report.add(place, header[0], header[0], "the first column must be 'entity'")
    columns: dict[str, Property] = {}
    for name in header[1:]:
        prop = names.get(name)
        if prop is None:
            report.unknown(place, name, name, names, "a property of properties.tsv")
        elif prop in columns.values():
            report.add(place, name, name, f"a second column for {prop.label} ({prop.id})")
        else:
            columns[name] = prop
    return columns


def _statement(
    subject: str,
    prop: Property,
    text: str,
    row: Row,
    column: str,
    items: dict[str, str],
    report: Report,
) -> Statement | None:
    rank = "normal"
    if text[:1] in RANKS and text not in items:
        rank, text = RANKS[text[0]], text[1:].strip()
    if text == "?" or text == "novalue":
        kind = "unknown" if text == "?" else "novalue"
        return Statement(subject, prop.id, "", kind, rank, "typed", text, row)
    if prop.kind == "item":
        if text not in items:
            report.unknown(row, column, text, items, "the key of an entity")
            return None
        value = items[text]
    else:
        lexical = _literal(prop.kind, text)
        if lexical is None:
            right = {"time": "YYYY, -YYYY or YYYY-MM-DD", "quantity": "a number"}
            report.add(row, column, text, f"{right.get(prop.kind, 'text')} is needed")
            return None
        value = lexical
    return Statement(subject, prop.id, value, prop.kind, rank, "typed", text, row)


def _literal(kind: str, text: str) -> str | None:
    """Return the lexical form in Wikidata's RDF, or None if `text` is not a value of this kind."""
    if kind == "quantity":
        if not _NUMBER.fullmatch(text):
            return None
        return text if text[0] in "+-" else f"+{text}"
    if kind == "time":
        match = _TIME.fullmatch(text)
        if match is None:
            return None
        sign, year, month, day = match.groups(default="01")
        if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
            return None
        return f"{'-' if sign == '-' else ''}{int(year):04}-{month}-{day}T00:00:00Z"
    return text or None


def complete(
    typed: list[Statement], properties: dict[str, Property], report: Report
) -> pl.DataFrame:
    """Return all statements: typed ones, then symmetric and inverse ones that were not typed.

    Only statements of best rank with an item as value have a reverse, and what is added has normal
    rank: that Bonn was a capital does not make it the capital of today's country.
    """
    said: dict[tuple[str, str, str, str], Statement] = {}
    for statement in typed:
        first = said.setdefault(statement.key, statement)
        if first is not statement:
            where = f"{first.row.file}, line {first.row.line}"
            column = properties[statement.relation].label
            report.add(statement.row, column, statement.text, f"already said in {where}")
    best = _best(typed)
    sexes = {s.subject: s.object for s in best if s.relation == SEX}
    for statement in best:
        for relation, origin in _other_directions(statement, properties, sexes):
            other = replace(
                statement,
                subject=statement.object,
                object=statement.subject,
                relation=relation,
                rank="normal",
                origin=origin,
                text="",
            )
            said.setdefault(other.key, other)
    rows = [tuple(getattr(s, c) for c in SCHEMA) for s in said.values()]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return frame.sort("subject", "relation", "object", "kind")


def _best(statements: list[Statement]) -> list[Statement]:
    groups: dict[tuple[str, str], list[Statement]] = defaultdict(list)
    for statement in statements:
        if statement.rank != "deprecated":
            groups[statement.subject, statement.relation].append(statement)
    best: list[Statement] = []
    for group in groups.values():
        preferred = [s for s in group if s.rank == "preferred"]
        best += preferred or group
    return [s for s in best if s.kind == "item"]


def _other_directions(
    statement: Statement, properties: dict[str, Property], sexes: dict[str, str]
) -> list[tuple[str, str]]:
    prop = properties.get(statement.relation)
    if prop is None or statement.subject == statement.object:
        return []
    if prop.symmetric:
        return [(prop.id, "symmetric")]
    if prop.complete == "yes":
        return [(inverse, "inverse") for inverse in prop.inverses]
    if prop.complete == "by sex":
        by_sex = {MALE: FATHER, FEMALE: MOTHER}
        parent = by_sex.get(sexes.get(statement.subject, ""))
        return [(parent, "inverse")] if parent in prop.inverses and parent else []
    return []
