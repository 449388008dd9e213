"""FACTS from a plain table of triples and a table of labels."""

from pathlib import Path

import polars as pl

from kgprobe.schema import FACTS, ContractError


def build(triples: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
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
