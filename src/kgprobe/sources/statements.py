"""Statements (contract STATEMENTS) out of the pulls of facts.rq or facts_truthy.rq."""

from collections.abc import Mapping

import polars as pl

from kgprobe.schema import STATEMENTS

RANKS = {
    "http://wikiba.se/ontology#PreferredRank": "preferred",
    "http://wikiba.se/ontology#NormalRank": "normal",
}
ENTITY = "http://www.wikidata.org/entity/"


def statements(pulls: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """STATEMENTS of Wikidata from one frame per property id (`P36`).

    Truthy pulls have no rank and count as normal. Where an entity came with several labels or
    sitelink counts (copies of a service that lag behind), the first label by code point and the
    greatest count stay.
    """
    frames = [_of_property(relation, frame) for relation, frame in sorted(pulls.items())]
    schema = dict(STATEMENTS.columns)
    table = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
    key = list(STATEMENTS.key)
    others = [c for c in table.columns if c not in key]
    return (
        table.group_by(key)
        .agg(*(pl.col(c).max() if "sitelinks" in c else pl.col(c).min() for c in others))
        .select(list(schema))
        .sort(key)
    )


def _of_property(relation: str, frame: pl.DataFrame) -> pl.DataFrame:
    rank = (
        pl.col("rank").replace_strict(RANKS, return_dtype=pl.String)
        if "rank" in frame.columns
        else pl.lit("normal")
    )
    return frame.select(
        kg=pl.lit("wikidata"),
        relation=pl.lit(relation),
        subject=pl.col("subject").str.strip_prefix(ENTITY),
        subject_label=pl.col("subject_label"),
        subject_sitelinks=pl.col("subject_sitelinks").cast(pl.Int64),
        object=pl.col("object").str.strip_prefix(ENTITY),
        object_label=pl.col("object_label"),
        object_sitelinks=pl.col("object_sitelinks").cast(pl.Int64),
        object_kind=pl.lit("item"),
        rank=rank,
    )
