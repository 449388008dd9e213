"""From statements as pulled to facts: one row per distinct best-rank statement."""

import polars as pl

from kgprobe.schema import FACTS


def best_rank(statements: pl.DataFrame) -> pl.DataFrame:
    """The statements of the best rank that each (subject, relation) has.

    Wikidata's definition of a truthy statement: the preferred ones where there are any, else the
    normal ones. Deprecated statements never reach STATEMENTS. Same columns as the input.
    """
    ranks = statements["rank"].unique().to_list()
    if surplus := sorted(set(ranks) - {"preferred", "normal"}):
        raise ValueError(f"unknown ranks {surplus} in the statements; legal: preferred, normal")
    preferred = pl.col("rank") == "preferred"
    some_preferred = preferred.any().over("kg", "subject", "relation")
    return statements.filter(preferred | ~some_preferred)


def build(statements: pl.DataFrame) -> pl.DataFrame:
    """FACTS from STATEMENTS: best rank, items as objects, duplicates once.

    Literals and special values (unknown, no value) are no facts between entities and are left out.
    """
    items = best_rank(statements).filter(pl.col("object_kind") == "item")
    return items.select(list(FACTS.columns)).unique(["kg", "subject", "relation", "object"])


def fact_id(relation: str = "relation", subject: str = "subject", obj: str = "object") -> pl.Expr:
    """Expression for the id of a fact, `relation/subject/object`."""
    return pl.concat_str(relation, subject, obj, separator="/")
