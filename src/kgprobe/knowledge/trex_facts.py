"""FACTS from T-REx: distinct triples between entities, with the labels of the dump."""

import polars as pl

from kgprobe.schema import FACTS
from kgprobe.sources.trex import ENTITY


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
