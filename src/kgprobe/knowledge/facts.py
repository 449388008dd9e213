"""FACTS from STATEMENTS: the statements of best rank."""

import polars as pl

from kgprobe.schema import FACTS


def best_rank(statements: pl.DataFrame) -> pl.DataFrame:
    """Return the statements of the best rank of each (subject, relation).

    Wikidata's definition of a truthy statement: the preferred ones if there are any, else the
    normal ones. Deprecated statements are never in STATEMENTS. Statements of an unknown value or
    of no value are dropped, whatever their rank: queries do not return them, and a benchmark
    must not depend on the source of its statements. The result has the same columns.
    """
    statements = statements.filter(pl.col("object_kind") != "special")
    ranks = statements["rank"].unique().to_list()
    if surplus := sorted(set(ranks) - {"preferred", "normal"}):
        raise ValueError(f"unknown ranks {surplus} in the statements; valid: preferred, normal")
    preferred = pl.col("rank") == "preferred"
    some_preferred = preferred.any().over("kg", "subject", "relation")
    return statements.filter(preferred | ~some_preferred)


def of_statements(statements: pl.DataFrame) -> pl.DataFrame:
    """Return FACTS from STATEMENTS: best rank, item-valued, without duplicates.

    Literals and special values (unknown, no value) are not facts between entities.
    """
    items = best_rank(statements).filter(pl.col("object_kind") == "item")
    return items.select(list(FACTS.columns)).unique(["kg", "subject", "relation", "object"])


def uses(statements: pl.DataFrame, subject: str = "subject", obj: str = "object") -> pl.DataFrame:
    """Return (name, n): the number of statements that contain each entity, or its label; one about
    an entity and itself counts once."""
    ends = statements.select(name=pl.concat_list(subject, obj).list.unique()).explode("name")
    return ends.drop_nulls().group_by("name").agg(n=pl.len().cast(pl.Int64))


def fact_id(relation: str = "relation", subject: str = "subject", obj: str = "object") -> pl.Expr:
    """Return an expression for the id of a fact, `relation/subject/object`."""
    return pl.concat_str(relation, subject, obj, separator="/")


def by_number(relation: str) -> tuple[int, str]:
    """Return a sort key for relations: P36 before P1001, other ids by their text."""
    digits = relation[1:]
    return (int(digits) if digits.isdecimal() else 0, relation)
