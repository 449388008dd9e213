"""FACTS and dates from T-REx."""

from dataclasses import replace

import ibis
from ibis.expr.types import IntegerColumn, StringColumn, Table

from kgprobe.schema import FACTS
from kgprobe.sources.dumps.trex import ENTITY

#: FACTS whose objects are literals with their datatype (dates). A dump may have none.
DATES = replace(FACTS, name="DATES", may_be_empty=True)


def of_trex(triples: Table, labels: Table) -> Table:
    """Return FACTS of entity-valued TREX_TRIPLES; `labels` has uri, label. Labels may be null."""
    edges = triples.filter(triples["object"].notnull())
    named = _subjects(edges, labels).mutate(object=_id("Q", edges["object"]))
    known = _items(labels).select(_object="id", object_label="label")
    return named.left_join(known, [("object", "_object")]).select(list(FACTS.columns))


def dates(triples: Table, labels: Table) -> Table:
    """Return DATES of the literal-valued TREX_TRIPLES; their label is the text of the date, or null
    if none is known."""
    literal = triples.filter(triples["object"].isnull() & triples["literal"].notnull())
    value = literal["literal"] + "^^" + literal["datatype"].fill_null("")
    known = labels.select(_object="uri", object_label="label")
    named = _subjects(literal.mutate(value=value), labels).left_join(known, [("value", "_object")])
    return named.mutate(object=named["value"]).select(list(DATES.columns)).distinct()


def _subjects(triples: Table, labels: Table) -> Table:
    """Return the triples with subject and relation ids, and the label of the subject."""
    rows = triples.mutate(
        kg=ibis.literal("wikidata"),
        subject=_id("Q", triples["subject"]),
        relation=_id("P", triples["predicate"]),
    )
    known = _items(labels).select(_subject="id", subject_label="label")
    return rows.left_join(known, [("subject", "_subject")])


def _items(labels: Table) -> Table:
    """Return (id, label) of the items; `labels` also has dates."""
    start = f"{ENTITY}Q"
    items = labels.filter(labels["uri"].startswith(start))
    return items.select("label", id=items["uri"].substr(len(ENTITY)))


def _id(letter: str, number: IntegerColumn) -> StringColumn:
    return ibis.literal(letter) + number.cast("string")
