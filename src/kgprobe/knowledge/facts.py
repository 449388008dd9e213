"""FACTS from statements as pulled: those of the best rank."""

import polars as pl

from kgprobe.schema import FACTS


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
        raise ValueError(f"unknown ranks {surplus} in the statements; valid: preferred, normal")
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


def by_number(relation: str) -> tuple[int, str]:
    """Order of relations: P36 before P1001, other ids by their text."""
    digits = relation[1:]
    return (int(digits) if digits.isdigit() else 0, relation)
