"""FACTS from T-REx, and the dates that it states."""

from dataclasses import replace

import ibis
from ibis.expr.types import IntegerColumn, StringColumn, Table

from kgprobe.schema import FACTS
from kgprobe.sources.dumps.trex import ENTITY

#: FACTS whose objects are literals: dates, with their datatype. A dump may have none.
DATES = replace(FACTS, name="DATES", may_be_empty=True)


def of_trex(triples: Table, labels: Table) -> Table:
    """FACTS of the entity-valued TREX_TRIPLES; `labels` has uri, label. Labels may stay null."""
    edges = triples.filter(triples["object"].notnull())
    named = _subjects(edges, labels).mutate(object=_id("Q", edges["object"]))
    known = _items(labels).select(_object="id", object_label="label")
    return named.left_join(known, [("object", "_object")]).select(list(FACTS.columns))


def dates(triples: Table, labels: Table) -> Table:
    """DATES of the literal-valued TREX_TRIPLES; the text of a date is made where it is used."""
    literal = triples.filter(triples["object"].isnull() & triples["literal"].notnull())
    value = literal["literal"] + "^^" + literal["datatype"].fill_null("")
    named = _subjects(literal, labels).mutate(object=value, object_label=ibis.null("string"))
    return named.select(list(DATES.columns)).distinct()


def _subjects(triples: Table, labels: Table) -> Table:
    """The triples with the text of subject and relation, and the label of the subject."""
    rows = triples.mutate(
        kg=ibis.literal("wikidata"),
        subject=_id("Q", triples["subject"]),
        relation=_id("P", triples["predicate"]),
    )
    known = _items(labels).select(_subject="id", subject_label="label")
    return rows.left_join(known, [("subject", "_subject")])


def _items(labels: Table) -> Table:
    """(id, label) of the items; dates have labels, too."""
    start = f"{ENTITY}Q"
    items = labels.filter(labels["uri"].startswith(start))
    return items.select("label", id=items["uri"].substr(len(ENTITY)))


def _id(letter: str, number: IntegerColumn) -> StringColumn:
    return ibis.literal(letter) + number.cast("string")
