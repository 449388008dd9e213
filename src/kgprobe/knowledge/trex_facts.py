"""FACTS from T-REx: distinct triples between entities, with the labels of the dump."""

import polars as pl

from kgprobe.schema import FACTS, Contract
from kgprobe.sources.trex import ENTITY

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


def build(triples: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
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
