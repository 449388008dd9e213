"""Metrics of OntoProbe's memorizing tasks per item and configuration, out of ranks or scores.

A configuration is (template, masks, pooling, loss, seed): manual templates are m1, m2, m3, trained
ones soft; options scored as sentences have masks `sentence` and their aggregation as pooling. Soft
prompts of several seeds also have their mean, whose seed is MEAN.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from kgprobe.metrics import cloze
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.answers import AGGREGATIONS as READINGS
from kgprobe.tables.answers import check_answers

CONFIGURATION = ("template", "masks", "pooling", "loss", "seed")
METRICS = ("R@1", "R@5", "MRRa", "MRR")
#: metrics beside the paper's
OTHERS = ("recall@5", "MRR, other golds left out", "MRRa, share of its ceiling")
#: aggregations of a sentence's log-likelihood; the first is the default
AGGREGATIONS = ("answer_mean", "sum")
#: in place of a seed: the mean over all seeds
MEAN = -1
#: how ties are read (switch `ties`)
TIES = ("expectation", "mean_rank", "index_order")


#: a gold's index, its rank range, its rank in the released order, its number of tokens
RANGES = ("gold", "best", "worst", "in_order", "tokens")


def of_items(items: pl.DataFrame) -> pl.DataFrame:
    """item, task, role, golds (their number), depth, leak, repeat, popularity, label of ITEMS.

    `finest` is the index of the finest gold.
    """
    metas = [json.loads(text) for text in items["meta"].to_list()]
    found = items.select(
        "item",
        "role",
        "row",
        pl.col("relation").alias("task"),
        golds=pl.col("answers").list.len(),
        finest=pl.col("answers").list.first(),
    )
    return found.with_columns(
        depth=pl.Series([m.get("depth", 0) for m in metas], dtype=pl.Int64),
        leak=pl.Series([bool(m.get("leak")) for m in metas], dtype=pl.Boolean),
        repeat=pl.Series(["repeat" in m for m in metas], dtype=pl.Boolean),
        popularity=pl.Series([m.get("popularity") for m in metas], dtype=pl.Int64),
        label=pl.Series([m.get("label", "") for m in metas], dtype=pl.String),
    )


def from_ranks(ranks: pl.DataFrame) -> pl.DataFrame:
    """RANKS (or the soft prompts' ranks, with loss and seed) with configurations as columns."""
    is_soft = "loss" in ranks.columns
    if is_soft:
        loss = pl.col("loss").str.to_uppercase()
        named = ranks.with_columns(template=pl.lit("soft"), loss=loss)
    else:
        named = ranks.with_columns(
            template=pl.lit("m") + pl.col("template").cast(pl.String), loss=pl.lit(""), seed=0
        )
    columns = ("item", *CONFIGURATION, *RANGES)
    return named.with_columns(pl.col("seed").cast(pl.Int64)).select(columns)


def from_scores(scores: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """The same from SCORES of all options: ranks under every aggregation of AGGREGATIONS."""
    golds = items.select("item", candidate=pl.col("answers")).explode("candidate")
    check_answers(scores, "answer_mean")
    parts = []
    for aggregation in AGGREGATIONS:
        value = READINGS[aggregation]
        own = scores.select("item", "template", "candidate", tokens="answer_count", value=value)
        over = pl.col("value").rank("min", descending=True).over("item", "template")
        upto = pl.col("value").rank("max", descending=True).over("item", "template")
        order = ["item", "template", "value", "tokens", "candidate"]
        own = own.with_columns(best=over.cast(pl.Int32), worst=upto.cast(pl.Int32))
        own = own.sort(order, descending=[False, False, True, False, False]).with_columns(
            in_order=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("item", "template")
        )
        parts.append(
            own.join(golds, on=["item", "candidate"]).with_columns(
                template=pl.lit("m") + pl.col("template").cast(pl.String),
                gold=pl.col("candidate"),
                masks=pl.lit("sentence"),
                pooling=pl.lit(aggregation),
                loss=pl.lit(""),
                seed=pl.lit(0, dtype=pl.Int64),
            )
        )
    return pl.concat(parts).select("item", *CONFIGURATION, *RANGES)


def metrics(
    found: pl.DataFrame, items: pl.DataFrame, ties: str = "expectation", recall: str = "hit"
) -> pl.DataFrame:
    """One row per item and configuration with METRICS and OTHERS in per cent, and `tokens`.

    `items` as `of_items` gives it; `tokens` are those of the finest gold. `ties` expectation:
    random order inside a tie, its expectation; mean_rank: every gold at the mean of its range;
    index_order: the order of the candidates, fewer tokens first (it stands in for the released
    one, an unstable sort). Under both a hit is all or nothing. `recall` hit: R@K is whether a gold
    is among the first K; share: the share of the golds that are. Raises ValueError for others.
    """
    if ties not in TIES or recall not in ("hit", "share"):
        raise ValueError(f"ties {ties!r}, recall {recall!r}; legal: {', '.join(TIES)}; hit, share")
    key = ["item", *CONFIGURATION]
    heads, values = read_ties(found, [*CONFIGURATION, "item"], ties)
    at = values.hits if recall == "hit" else values.recall
    columns = {
        "R@1": at[1],
        "R@5": at[5],
        "MRRa": values.mrra,
        "MRR": values.mrr,
        "recall@5": values.recall[5],
        "MRR, other golds left out": values.filtered,
        "MRRa, share of its ceiling": values.mrra / values.ceiling,
    }
    frame = heads.select(key).with_columns(
        **{name: pl.Series(100.0 * numbers) for name, numbers in columns.items()}
    )
    lengths = found.select(*key, "tokens", finest="gold").unique([*key, "finest"])
    joined = frame.join(items, on="item", how="left", maintain_order="left")
    return joined.join(lengths, on=[*key, "finest"], how="left", maintain_order="left")


def read_ties(
    ranks: pl.DataFrame, key: Sequence[str], ties: str
) -> tuple[pl.DataFrame, cloze.Items]:
    """The first row of every `key` of rank ranges, sorted, and the metrics of the golds that it
    has, under a switch `ties` (see `metrics`)."""
    rows = ranks.sort([*key, "in_order" if ties == "index_order" else "best"])
    heads = rows.with_row_index("_at").unique(list(key), keep="first", maintain_order=True)
    starts = heads["_at"].to_numpy().astype(np.int64)
    best, worst = (rows[name].to_numpy().astype(np.int64) for name in ("best", "worst"))
    if ties == "mean_rank":
        return heads, cloze.at_ranks((best + worst) / 2, starts)
    if ties == "index_order":
        return heads, cloze.at_ranks(rows["in_order"].to_numpy().astype(float), starts)
    return heads, cloze.values(best, worst, starts)


def over_seeds(values: pl.DataFrame) -> pl.DataFrame:
    """`values` with the mean over seeds (seed MEAN) in place of the seeds of every configuration.

    What has one seed alone stays as it is.
    """
    key = ["item", *(n for n in CONFIGURATION if n != "seed")]
    seeds = pl.col("seed").n_unique().over(*key[1:], "task")
    several = values.filter(seeds > 1)
    if not several.height:
        return values
    numbers = [*METRICS, *OTHERS]
    others = [n for n in values.columns if n not in (*key, *numbers, "seed")]
    means = several.group_by(key, maintain_order=True).agg(
        pl.col(others).first(), ordered_mean(numbers), seed=pl.lit(MEAN, dtype=pl.Int64)
    )
    return pl.concat([values.filter(seeds == 1), means.select(values.columns)])


def choose(values: pl.DataFrame, select: str = "dev") -> dict[str, tuple[object, ...]]:
    """Per task the configuration that is best on the rows for choosing (role dev).

    By MRRa, then MRR, then R@5, then multiple masks before a single one, mean before first before
    max, lower template, BCE before NLL. Test rows are never read, unless `select` is oracle: then
    they alone choose.
    """
    dev = values.filter(role="dev" if select == "dev" else "test")
    means = dev.group_by("task", *CONFIGURATION).agg(ordered_mean(["MRRa", "MRR", "R@5"]).round(9))
    order = means.with_columns(
        _masks=pl.col("masks").replace_strict({"multi": 0, "single": 1}, default=0),
        _pooling=pl.col("pooling").replace_strict(
            {"mean": 0, "answer_mean": 0, "first": 1, "max": 2}, default=3
        ),
    ).sort(
        ["MRRa", "MRR", "R@5", "_masks", "_pooling", "template", "loss", "seed"],
        descending=[True, True, True, False, False, False, False, False],
    )
    first = order.unique("task", keep="first", maintain_order=True)
    return {str(row[0]): row[1:] for row in first.select("task", *CONFIGURATION).rows()}


def fixed(values: pl.DataFrame, task: str) -> tuple[object, ...] | None:
    """The configuration laid down beforehand: m/mean, last template (or soft with BCE, seed 0)."""
    own = values.filter((pl.col("task") == task) & pl.col("masks").is_in(["multi", "sentence"]))
    own = own.filter(pl.col("pooling").is_in(["mean", AGGREGATIONS[0]]))
    own = own.filter(pl.col("loss").is_in(["", "BCE"]))
    found = own.select(CONFIGURATION).unique().sort("template", "seed", descending=[True, False])
    return found.row(0) if found.height else None


def of_configuration(values: pl.DataFrame, chosen: tuple[object, ...]) -> pl.DataFrame:
    """The rows of one configuration."""
    return values.filter(
        pl.all_horizontal(
            pl.col(n) == pl.lit(v) for n, v in zip(CONFIGURATION, chosen, strict=True)
        )
    )


def asked_rows(values: pl.DataFrame, tp_rows: str = "distinct") -> pl.DataFrame:
    """The test rows; `tp_rows` distinct leaves out repeated rows."""
    test = values.filter(role="test")
    return test if tp_rows == "all" else test.filter(~pl.col("repeat"))


def published(folder: Path) -> Mapping[str, pl.DataFrame]:
    """The printed tables of the paper: configurations (C.2), memorizing (Table 4), and others."""
    names = ("configurations", "memorizing", "choice", "reasoning", "sizes")
    texts = ("task", "model", "template", "masks", "pooling", "loss", "metric")
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(texts, pl.String)
    return {
        n: pl.read_csv(folder / f"ontoprobe_{n}.tsv", separator="\t", schema_overrides=schema)
        for n in names
    }
