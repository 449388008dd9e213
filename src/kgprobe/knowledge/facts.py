"""FACTS from statements as pulled (best rank), and from T-REx."""

from dataclasses import replace

import polars as pl

from kgprobe.schema import FACTS
from kgprobe.sources.dates import UNDATED
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


def dates(triples: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """DATES of the literal-valued TREX_TRIPLES; the text of a date is made where it is used."""
    named = labels.filter(pl.col("uri").str.starts_with(ENTITY + "Q")).select(
        pl.col("uri").str.strip_prefix(ENTITY).alias("subject"), pl.col("label")
    )
    literal = triples.filter(pl.col("object").is_null() & pl.col("literal").is_not_null())
    found = literal.select(
        kg=pl.lit("wikidata"),
        subject=pl.format("Q{}", "subject"),
        relation=pl.format("P{}", "predicate"),
        object=pl.concat_str("literal", pl.lit("^^"), pl.col("datatype").fill_null("")),
        object_label=pl.lit(None, dtype=pl.String),
    )
    found = found.join(named, on="subject", how="left").rename({"label": "subject_label"})
    return found.with_columns(UNDATED).select(list(FACTS.columns)).unique(list(FACTS.key))


def of_trex(triples: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """FACTS of the entity-valued TREX_TRIPLES; `labels` has uri, label. Labels may stay null.

    T-REx dates no statement.
    """
    named = labels.filter(pl.col("uri").str.starts_with(ENTITY + "Q")).select(
        pl.col("uri").str.strip_prefix(ENTITY).alias("id"), "label"
    )
    edges = triples.filter(pl.col("object").is_not_null()).select(
        kg=pl.lit("wikidata"),
        subject=pl.format("Q{}", "subject"),
        relation=pl.format("P{}", "predicate"),
        object=pl.format("Q{}", "object"),
    )
    for side in ("subject", "object"):
        sided = named.rename({"id": side, "label": f"{side}_label"})
        edges = edges.join(sided, on=side, how="left", maintain_order="left")
    return edges.with_columns(UNDATED).select(list(FACTS.columns))


def by_number(relation: str) -> tuple[int, str]:
    """Order of relations: P36 before P1001, other ids by their text."""
    digits = relation[1:]
    return (int(digits) if digits.isdigit() else 0, relation)
