"""Metrics of OntoProbe's memorizing tasks per item and configuration, from ranks or scores.

A configuration is (template, masks, pooling, loss, seed): manual templates are m1, m2, m3, trained
ones soft; options scored as sentences have masks `sentence` and their aggregation as pooling. Soft
prompts of several seeds also have their mean, whose seed is MEAN.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from kgprobe.benchmarks.ontoprobe.concepts import TASKS, TEMPLATES
from kgprobe.metrics import cloze
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.answers import AGGREGATIONS as READINGS
from kgprobe.tables.answers import Probe, check_answers
from kgprobe.templates import answer_is_last

CONFIGURATION = ("template", "masks", "pooling", "loss", "seed")
METRICS = ("R@1", "R@5", "MRRa", "MRR")
#: metrics in addition to the paper's
OTHERS = ("recall@5", "MRR, other golds left out", "MRRa, share of its ceiling")
#: aggregations of a sentence's log-likelihood; the first is the default
AGGREGATIONS = ("answer_mean", "sum")
#: tasks whose templates continue after the answer, with the property's clause
CONTINUED = tuple(t for t, texts in TEMPLATES.items() if not all(map(answer_is_last, texts)))
#: prompts that end with the answer whatever the template
ANSWER_LAST = ("question", "chat")
#: in place of a seed: the mean over all seeds
MEAN = -1
#: treatment of ties (switch `ties`): random order, mean of the range, or order of the candidates,
#: fewer tokens first, which replaces the released, unstable sort; under the last two a hit is
#: binary
TIES = ("expectation", "mean_rank", "index_order")
#: a gold's index, its rank range, its rank in the released order, its number of tokens
RANGES = ("gold", "best", "worst", "in_order", "tokens")


def of_items(items: pl.DataFrame) -> pl.DataFrame:
    """Return ITEMS with their number of golds, the most specific one's index, and `meta`."""
    names = ("depth", "leak", "repeat", "popularity", "label")
    meta = {name: pl.col("meta").str.json_path_match(f"$.{name}") for name in names}
    return items.select(
        "item",
        "role",
        "row",
        task="relation",
        golds=pl.col("answers").list.len(),
        finest=pl.col("answers").list.first(),
        depth=meta["depth"].cast(pl.Int64).fill_null(0),
        leak=(meta["leak"] == "true").fill_null(False),
        repeat=meta["repeat"].is_not_null(),
        popularity=meta["popularity"].cast(pl.Int64),
        label=meta["label"].fill_null(""),
    )


def from_ranks(ranks: pl.DataFrame) -> pl.DataFrame:
    """Add configurations as columns to RANKS (or to soft prompts' ranks, with loss and seed)."""
    if "loss" in ranks.columns:
        named = ranks.with_columns(template=pl.lit("soft"), loss=pl.col("loss").str.to_uppercase())
    else:
        named = ranks.with_columns(template=pl.format("m{}", "template"), loss=pl.lit(""), seed=0)
    return named.with_columns(pl.col("seed").cast(pl.Int64)).select("item", *CONFIGURATION, *RANGES)


def to_the_end(
    scores: pl.DataFrame, probe: Probe, items: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return SCORES or CONTENT_FREE in which the answer's part of a causal model's sentence reaches
    to its end in CONTINUED tasks; `tokens` keeps the number of the answer's tokens.

    A causal model reads the clause after the answer, so that the answer's own tokens have the same
    scores for every property (OntoProbe has masked models only; the complete sentence is ours).
    """
    if probe.kind != "causal" or probe.prompt in ANSWER_LAST:
        return scores
    if items is None:
        inside = pl.col("relation").is_in(CONTINUED)
    else:
        named = items.filter(pl.col("relation").is_in(CONTINUED))["item"]
        inside = pl.col("item").is_in(named.implode())
    inside &= pl.col("continuation_sum").is_not_null()
    return scores.with_columns(
        answer_sum=pl.when(inside).then("continuation_sum").otherwise("answer_sum"),
        answer_count=pl.when(inside).then(pl.lit(1, pl.Int32)).otherwise("answer_count"),
        tokens="answer_count",
    )


def from_scores(scores: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Compute ranks (as `from_ranks`) from SCORES of all options, under each of AGGREGATIONS."""
    check_answers(scores, "answer_mean")
    golds = items.select("item", gold="answers").explode("gold")
    parts, by = [], ["item", "template"]
    tokens = "tokens" if "tokens" in scores.columns else "answer_count"
    for aggregation in AGGREGATIONS:
        value = READINGS[aggregation]
        ranked = scores.sort(*by, -value, tokens, "candidate").select(
            "item",
            template=pl.format("m{}", "template"),
            masks=pl.lit("sentence"),
            pooling=pl.lit(aggregation),
            loss=pl.lit(""),
            seed=pl.lit(0, dtype=pl.Int64),
            gold="candidate",
            best=value.rank("min", descending=True).over(by).cast(pl.Int32),
            worst=value.rank("max", descending=True).over(by).cast(pl.Int32),
            in_order=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(by),
            tokens=tokens,
        )
        parts.append(ranked.join(golds, on=["item", "gold"]))
    return pl.concat(parts)


def metrics(
    ranges: pl.DataFrame, items: pl.DataFrame, ties: str = "expectation", recall: str = "hit"
) -> pl.DataFrame:
    """Return one row per item and configuration with METRICS and OTHERS in per cent, `best` and
    `worst`, the rank range of the best ranked gold, and `tokens`, those of the most specific one;
    `items`: from `of_items`. `recall`: R@K is whether a gold is among the first K (hit), or the
    proportion of golds that are (share)."""
    if ties not in TIES or recall not in ("hit", "share"):
        raise ValueError(f"ties {ties!r}, recall {recall!r}; valid: {', '.join(TIES)}; hit, share")
    key = ["item", *CONFIGURATION]
    heads, values = read_ties(ranges, [*CONFIGURATION, "item"], ties)
    at = values.hits if recall == "hit" else values.recall
    others = (values.recall[5], values.filtered, values.mrra / values.ceiling)
    columns = [pl.Series(100.0 * each) for each in (at[1], at[5], values.mrra, values.mrr, *others)]
    named = dict(zip((*METRICS, *OTHERS), columns, strict=True))
    frame = heads.select(*key, "best", "worst").with_columns(**named)
    lengths = ranges.select(*key, "tokens", finest="gold").unique([*key, "finest"])
    joined = frame.join(items, on="item", how="left", maintain_order="left")
    return joined.join(lengths, on=[*key, "finest"], how="left", maintain_order="left")


def read_ties(
    ranks: pl.DataFrame, key: Sequence[str], ties: str
) -> tuple[pl.DataFrame, cloze.Items]:
    """Return the first row of every `key` of rank ranges, sorted, and the metrics of its golds
    under a switch `ties` (see `metrics`)."""
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
    """Replace the seeds of every configuration that has several by their mean (seed MEAN)."""
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
    """Return per task the configuration that is best on the selection rows (role dev; the test rows
    only under `select` oracle): by MRRa, MRR, R@5, multiple masks before a single one, mean before
    first before max, lower template, BCE before NLL."""
    dev = values.filter(role="dev" if select == "dev" else "test")
    means = dev.group_by("task", *CONFIGURATION).agg(ordered_mean(["MRRa", "MRR", "R@5"]).round(9))
    poolings = {"mean": 0, "answer_mean": 0, "first": 1, "max": 2}
    order = means.sort(
        -pl.col("MRRa", "MRR", "R@5"),
        pl.col("masks") == "single",
        pl.col("pooling").replace_strict(poolings, default=3),
        *("template", "loss", "seed"),
    )
    first = order.unique("task", keep="first", maintain_order=True)
    return {str(row[0]): row[1:] for row in first.select("task", *CONFIGURATION).rows()}


def fixed(values: pl.DataFrame, task: str) -> tuple[object, ...] | None:
    """Return the configuration fixed in advance: m/mean, last template (soft: BCE, seed 0)."""
    chosen = values.filter(
        pl.col("masks").is_in(["multi", "sentence"]),
        pl.col("pooling").is_in(["mean", AGGREGATIONS[0]]),
        pl.col("loss").is_in(["", "BCE"]),
        task=task,
    )
    rows = chosen.select(CONFIGURATION).unique().sort("template", "seed", descending=[True, False])
    return rows.row(0) if rows.height else None


def of_configuration(values: pl.DataFrame, chosen: tuple[object, ...]) -> pl.DataFrame:
    """Select the rows of one configuration."""
    return values.filter(**dict(zip(CONFIGURATION, chosen, strict=True)))


def in_fixed(values: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of every task in its `fixed` configuration; tasks without one have none."""
    chosen = {task: fixed(values, task) for task in TASKS}
    parts = [of_configuration(values.filter(task=t), c) for t, c in chosen.items() if c]
    return pl.concat(parts) if parts else values.clear()


def select_test_rows(values: pl.DataFrame, tp_rows: str = "distinct") -> pl.DataFrame:
    """Select the test rows; with `tp_rows` distinct, without repeated rows."""
    test = values.filter(role="test")
    return test if tp_rows == "all" else test.filter(~pl.col("repeat"))


def published(folder: Path) -> Mapping[str, pl.DataFrame]:
    """Read the paper's printed tables: configurations (C.2), memorizing (Table 4), and others."""
    names = ("configurations", "memorizing", "choice", "reasoning", "sizes")
    texts = ("task", "model", "template", "masks", "pooling", "loss", "metric")
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(texts, pl.String)
    read = partial(pl.read_csv, separator="\t", schema_overrides=schema, glob=False)
    return {name: read(folder / f"ontoprobe_{name}.tsv") for name in names}
