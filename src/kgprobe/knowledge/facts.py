"""FACTS from statements as pulled (best rank), and from T-REx."""

from dataclasses import replace

import ibis
import polars as pl
from ibis.expr.types import IntegerColumn, StringColumn, Table

from kgprobe.schema import FACTS
from kgprobe.sources.dumps.trex import ENTITY


def best_rank(statements: pl.DataFrame) -> pl.DataFrame:
    """The statements of the best rank that each (subject, relation) has.

    Wikidata's definition of a truthy statement: the preferred ones where there are any, else the
    normal ones. Deprecated statements never reach STATEMENTS. An unknown value, or the statement
    that there is none, is no value, whatever its rank: queries do not give them, and a benchmark
    must not depend on where its statements came from. Same columns as the input.
    """
    statements = statements.filter(pl.col("object_kind") != "special")
    ranks = statements["rank"].unique().to_list()
    if surplus := sorted(set(ranks) - {"preferred", "normal"}):
        raise ValueError(f"unknown ranks {surplus} in the statements; legal: preferred, normal")
    preferred = pl.col("rank") == "preferred"
    some_preferred = preferred.any().over("kg", "subject", "relation")
    return statements.filter(preferred | ~some_preferred)


def of_statements(statements: pl.DataFrame) -> pl.DataFrame:
    """FACTS from STATEMENTS: best rank, items as objects, duplicates once.

    Literals and special values (unknown, no value) are no facts between entities and are left out.
    """
    items = best_rank(statements).filter(pl.col("object_kind") == "item")
    return items.select(list(FACTS.columns)).unique(["kg", "subject", "relation", "object"])


def fact_id(relation: str = "relation", subject: str = "subject", obj: str = "object") -> pl.Expr:
    """Expression for the id of a fact, `relation/subject/object`."""
    return pl.concat_str(relation, subject, obj, separator="/")


#: FACTS whose objects are literals: dates, with their datatype. A dump may have none.
DATES = replace(FACTS, name="DATES", may_be_empty=True)
# an empty list has no type on Spark
_UNDATED = ibis.array(["-"])[1:]


def of_trex(triples: Table, labels: Table) -> Table:
    """FACTS of the entity-valued TREX_TRIPLES; `labels` has uri, label. Labels may stay null.

    T-REx dates no statement.
    """
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
    told = triples.mutate(
        kg=ibis.literal("wikidata"),
        subject=_id("Q", triples["subject"]),
        relation=_id("P", triples["predicate"]),
        start=_UNDATED,
        end=_UNDATED,
    )
    known = _items(labels).select(_subject="id", subject_label="label")
    return told.left_join(known, [("subject", "_subject")])


def _items(labels: Table) -> Table:
    """(id, label) of the items; dates have labels, too."""
    start = f"{ENTITY}Q"
    items = labels.filter(labels["uri"].startswith(start))
    return items.select("label", id=items["uri"].substr(len(ENTITY)))


def _id(letter: str, number: IntegerColumn) -> StringColumn:
    return ibis.literal(letter) + number.cast("string")


def by_number(relation: str) -> tuple[int, str]:
    """Order of relations: P36 before P1001, other ids by their text."""
    digits = relation[1:]
    return (int(digits) if digits.isdigit() else 0, relation)
