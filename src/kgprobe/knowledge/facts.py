"""FACTS from statements as pulled (best rank), from T-REx, and from a plain table of triples."""

from pathlib import Path

import polars as pl

from kgprobe.schema import FACTS, Contract, ContractError
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
DATES = Contract("DATES", FACTS.columns, FACTS.key, FACTS.nullable, may_be_empty=True)


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
    return found.select(list(FACTS.columns)).unique(list(FACTS.key))


def of_trex(triples: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """FACTS of the entity-valued TREX_TRIPLES; `labels` has uri, label. Labels may stay null."""
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
    return edges.select(list(FACTS.columns))


def of_triples(triples: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """FACTS of (s, p, o) with Wikidata ids; `labels` has qid, label. Labels may stay null.

    Objects that are no ids are literals and stay as they are; equal rows are one fact.
    """
    if missing := [column for column in ("s", "p", "o") if column not in triples.columns]:
        raise ContractError(f"triples: missing columns {missing}; expected s, p, o")
    facts = triples.select(
        pl.lit("wikidata").alias("kg"), subject="s", relation="p", object="o"
    ).unique()
    named = labels.filter(pl.col("label") != "").unique("qid", keep="first", maintain_order=True)
    for side in ("subject", "object"):
        sided = named.rename({"qid": side, "label": f"{side}_label"})
        facts = facts.join(sided, on=side, how="left")
    return facts.select(list(FACTS.columns))


def read_labels(path: str | Path) -> pl.DataFrame:
    """(qid, label) of a tab-separated table; ContractError when it has other columns."""
    frame = pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False)
    if frame.columns[:2] != ["qid", "label"]:
        raise ContractError(f"{path}: columns {frame.columns}, expected qid, label")
    return frame.select("qid", "label").drop_nulls().sort("qid", "label")
