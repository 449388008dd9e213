"""The properties of the embedded graph: properties.tsv, one row per Wikidata property.

Columns that name classes hold keys of entities or classes. A constraint is typed as three columns
(classes, relation, status) for the subject (Q21503250) and for the value (Q21510865).
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.world.tables import Report, Row, read_table

COLUMNS = (
    "property",
    "id",
    "datatype",
    "aliases",
    "description",
    "parents",
    "inverse",
    "complete",
    "symmetric",
    "subject classes",
    "subject relation",
    "subject status",
    "value classes",
    "value relation",
    "value status",
    "equivalent",
)
#: Wikibase's name of each datatype, and the kind of value that a facts table holds for it.
DATATYPES = {
    "item": ("WikibaseItem", "item"),
    "property": ("WikibaseProperty", "property"),
    "time": ("Time", "time"),
    "quantity": ("Quantity", "quantity"),
    "string": ("String", "string"),
    "external-id": ("ExternalId", "string"),
    "url": ("Url", "string"),
    "text": ("Monolingualtext", "string"),
    "media": ("CommonsMedia", "string"),
}
SUBJECT_TYPE, VALUE_TYPE = "Q21503250", "Q21510865"
#: Words for the values of P2309 and of P2316; `deprecated` is the rank of the statement.
RELATIONS = {"instance of": "Q21503252", "subclass of": "Q21514624", "either": "Q30208840"}
STATUSES = {"mandatory": "Q21502408", "suggestion": "Q62026391", "deprecated": ""}
_COMPLETE = ("yes", "by sex")


@dataclass(frozen=True)
class Constraint:
    """One P2302 statement: its type, rank and the qualifiers P2308, P2309?, P2316?."""

    type: str
    classes: tuple[str, ...]
    relation: str | None
    status: str | None
    rank: str


@dataclass(frozen=True)
class Property:
    """One property; parents, inverses and equivalents are ids and IRIs in the order typed.

    complete: "" (leave), "yes" (the inverse statements are added) or "by sex" (the inverse is
    chosen by the subject's sex: child to father or mother).
    """

    id: str
    label: str
    datatype: str
    aliases: tuple[str, ...]
    description: str | None
    parents: tuple[str, ...]
    inverses: tuple[str, ...]
    complete: str
    symmetric: bool
    constraints: tuple[Constraint, ...]
    equivalents: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Return the kind of a property's values in a facts table: item, time, quantity or
        string."""
        return DATATYPES[self.datatype][1]


def read_properties(path: Path, items: dict[str, str], report: Report) -> dict[str, Property]:
    """Return properties by id in typed order. `items` maps the key of an entity or class to
    its id."""
    rows = list(read_table(path, COLUMNS, report))
    ids: dict[str, str] = {}
    seen: dict[str, Row] = {}
    for row in rows:
        label, identifier = row.text("property"), row.text("id")
        if not re.fullmatch(r"P[1-9]\d*", identifier):
            report.add(row, "id", identifier, "a Wikidata property id such as P36 is needed")
        for column, value in (("property", label), ("id", identifier)):
            if value in seen:
                report.add(row, column, value, f"already defined on line {seen[value].line}")
            seen[value] = row
        ids[label] = identifier
    found = [_property(row, ids, items, report) for row in rows]
    return {p.id: p for p in found}


def _property(row: Row, ids: dict[str, str], items: dict[str, str], report: Report) -> Property:
    datatype = row.text("datatype")
    if datatype not in DATATYPES:
        report.unknown(row, "datatype", datatype, DATATYPES, f"one of {', '.join(DATATYPES)}")
        datatype = "string"
    complete, symmetric = row.text("complete"), row.text("symmetric")
    if complete and complete not in _COMPLETE:
        report.add(row, "complete", complete, f"blank or one of {', '.join(_COMPLETE)}")
    if symmetric not in ("", "yes"):
        report.add(row, "symmetric", symmetric, "blank or yes")
    equivalents = row.values("equivalent")
    for iri in equivalents:
        if not re.fullmatch(r"https?://[^\s<>\"{}|\\^`]+", iri):
            report.add(row, "equivalent", iri, "a full IRI is needed")
    constraints = (
        _constraint(row, "subject", SUBJECT_TYPE, items, report),
        _constraint(row, "value", VALUE_TYPE, items, report),
    )
    return Property(
        id=row.text("id"),
        label=row.text("property"),
        datatype=datatype,
        aliases=tuple(row.values("aliases")),
        description=row.text("description") or None,
        parents=_named(row, "parents", ids, report),
        inverses=_named(row, "inverse", ids, report),
        complete=complete,
        symmetric=symmetric == "yes",
        constraints=tuple(c for c in constraints if c is not None),
        equivalents=tuple(equivalents),
    )


def _named(row: Row, column: str, ids: dict[str, str], report: Report) -> tuple[str, ...]:
    found = []
    for value in row.values(column):
        if value in ids:
            found.append(ids[value])
        else:
            report.unknown(row, column, value, ids, "a property of this table")
    return tuple(found)


def _constraint(
    row: Row, side: str, type_: str, items: dict[str, str], report: Report
) -> Constraint | None:
    typed = row.values(f"{side} classes")
    if not typed:
        return None
    classes = []
    for key in typed:
        if key in items:
            classes.append(items[key])
        else:
            report.unknown(row, f"{side} classes", key, items, "the key of a class or entity")
    relation, status = row.text(f"{side} relation"), row.text(f"{side} status")
    if relation and relation not in RELATIONS:
        report.add(row, f"{side} relation", relation, f"blank or one of {', '.join(RELATIONS)}")
    if status and status not in STATUSES:
        report.add(row, f"{side} status", status, f"blank or one of {', '.join(STATUSES)}")
    return Constraint(
        type=type_,
        classes=tuple(classes),
        relation=RELATIONS.get(relation),
        status=STATUSES.get(status) or None,
        rank="deprecated" if status == "deprecated" else "normal",
    )
