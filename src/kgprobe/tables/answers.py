"""Answers of a model: SCORES judged against ITEMS, one row per item and template.

A prediction is the option with the largest score. Ties are kept: `hit` is the expected accuracy
under random tie breaking, `first` the accuracy of taking the lowest index among the leaders.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import polars as pl

from kgprobe import schema
from kgprobe.experiments import is_control
from kgprobe.metrics import aggregations
from kgprobe.metrics.sums import ordered_mean, ordered_sum
from kgprobe.templates import NO_SUBJECTS, fill

Row = Mapping[str, str]
#: the sum minus the option's mean over questions about other subjects (`with_priors`)
PRIOR = "prior"
#: the sum minus the option's mean over content-free subjects (`with_content_free`)
CONTENT_FREE = "content_free"
#: aggregations that are undefined for some items -> the column that is then null
CORRECTED = {PRIOR: "corrected", CONTENT_FREE: "uninformed"}
#: printed below every table that shows one of them
PRIOR_IS = (
    "Prior-corrected: minus the option's mean score over questions of its relation about other "
    "subjects (PMI, five folds by subject), or over content-free subjects "
    f"({', '.join(NO_SUBJECTS)}). It uses other questions' texts, no labels, and it assumes "
    "balanced answers; it is not part of the paper, and no published figure uses it."
)
#: aggregation -> the score of an option (docs/scoring.md, Aggregation)
AGGREGATIONS: dict[str, pl.Expr] = {
    "sum": pl.col("sum"),
    "mean": pl.col("sum") / pl.col("count"),
    "answer_only": pl.col("answer_sum"),
    "answer_mean": pl.col("answer_sum") / pl.col("answer_count"),
    "conditional": pl.coalesce("continuation_sum", "answer_sum"),
    "byte_mean": pl.col("sum") / pl.col("bytes"),
    **{name: pl.col(column) for name, column in CORRECTED.items()},
}
#: identity of an item's subject: the id, if there is one
SUBJECT = pl.when(pl.col("subject_id") == "").then("subject").otherwise("subject_id")
#: identity of an option: the id, if there is one
OPTION = pl.when(pl.col("id") == "").then("label").otherwise("id")
#: aggregations over the answer's tokens alone
OF_ANSWERS = ("answer_only", "answer_mean", "conditional")


@dataclass(frozen=True)
class Probe:
    """A row of the table of experiments with the properties of its model."""

    benchmark: str
    prompt: str
    method: str
    model: str
    kind: str
    #: BOS policy of causal models: none, default or forced; "-" for the other kinds
    bos: str = "-"
    dtype: str = "float32"
    parameters: int | None = None
    #: row of resources/published that belongs to the same weights, or ""
    published: str = ""
    #: source of the weights, as in models.tsv; `control:` marks control models
    source: str = ""

    @property
    def control(self) -> bool:
        """Whether the model was trained on a known half of the facts."""
        return is_control({"source": self.source})

    @property
    def dimensions(self) -> dict[str, Any]:
        """The probe's dimensions in RESULTS: benchmark, model, prompt, method."""
        return {d: getattr(self, d) for d in ("benchmark", "model", "prompt", "method")}


def probes_of(
    experiments: Sequence[Row], models: Mapping[str, Row], scores: Sequence[str | Path]
) -> list[Probe]:
    """Build a Probe per row of the table of experiments; `scores`: SCORES files in the same order.

    `models`: rows of models.tsv by name. The number of parameters comes from the metadata of the
    scores (`model.parameters` in their provenance), if present.
    """
    probes = []
    for row, path in zip(experiments, scores, strict=True):
        model = models[row["model"]]
        columns = {name: row[name] for name in ("benchmark", "prompt", "method", "model")}
        settings = {name: model[name] for name in ("kind", "bos", "dtype", "source")}
        count = recorded(path, "model").get("parameters")
        published, parameters = model.get("published", ""), int(count) if count else None
        probes.append(Probe(**columns, **settings, parameters=parameters, published=published))
    return probes


def recorded(path: str | Path, what: str) -> dict[str, Any]:
    """Return an entry of a file's provenance; {} if there is none (answers of servers record no
    model)."""
    record = schema.provenance(path).get(what)
    return dict(record) if isinstance(record, dict) else {}


def folders(files: Iterable[str | Path]) -> dict[str, Path]:
    """Return benchmark -> its folder, from the path of a file in each."""
    return {Path(path).parent.name: Path(path).parent for path in files}


def gold_ids(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Return item, relation and id (else label) of every correct answer of ITEMS."""
    named = candidates.select(id=OPTION, candidates="set", answers="index")
    golds = items.select("item", "relation", "candidates", "answers").explode("answers")
    return golds.join(named, on=["candidates", "answers"]).select("item", "relation", "id")


def questions(folder: str | Path) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Read ITEMS, CANDIDATES and PROMPTS from a benchmark's folder."""
    return (
        schema.read(Path(folder) / "items.parquet", schema.ITEMS),
        schema.read(Path(folder) / "candidates.parquet", schema.CANDIDATES),
        schema.read(Path(folder) / "prompts.parquet", schema.PROMPTS),
    )


def read_aliases(path: str | Path) -> dict[str, list[str]]:
    """Read aliases by entity id from a table of pulled rows (entity as URI, alias)."""
    grouped = pl.read_parquet(path).group_by("entity").agg(pl.col("alias").sort())
    return {uri.rsplit("/", 1)[-1]: names for uri, names in grouped.rows()}


def judge(
    scores: pl.DataFrame,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    aggregation: str = "sum",
    where: str = "scores",
    prompts: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Judge complete SCORES, see `judge_scores`.

    Every item must be present under all templates that occur, or, with `prompts`, under those of
    its relation, with all options of its set. Raises ValueError, naming relation and item, if one
    is missing: an incomplete relation is never left out of a mean.
    """
    _check_complete(scores, items, candidates, where, prompts)
    return judge_scores(scores, items, aggregation, where)


def judge_scores(
    scores: pl.DataFrame, items: pl.DataFrame, aggregation: str, where: str = "scores"
) -> pl.DataFrame:
    """Judge SCORES under an aggregation.

    Returns item, relation, template, options, winner, leaders, leading (the top-ranked options),
    hit, first, above, tied, level, inverted (misordered pairs of a correct and a wrong option, ties
    half), probability (of the correct option, softmax over options), confidence (the largest
    probability), brier (sum over options of the squared distance of its probability from 1 or 0;
    several correct options share the 1), margin (nats, correct option minus the best wrong one).

    `above` and `tied` count the wrong options above and tied with the correct one; its rank is
    above + 1 to above + tied + 1. If there are several correct options, the best ranked one counts,
    of which `level` are tied, and in `inverted` every one. Raises ValueError for an item without a
    correct or without a wrong option; see also `check_answers`. byte_mean needs scores
    `with_bytes`; prior and content_free need `with_priors` and `with_content_free`, and items
    without one are left out.
    """
    if aggregation not in AGGREGATIONS:
        raise ValueError(f"unknown aggregation {aggregation!r}; valid: {', '.join(AGGREGATIONS)}")
    if aggregation in OF_ANSWERS:
        check_answers(scores, aggregation, where)
    if aggregation in CORRECTED:
        scores = scores.drop_nulls(CORRECTED[aggregation])
    rows = scores.select("item", "template", "candidate", score=AGGREGATIONS[aggregation])
    golds = items.select("item", candidate="answers").explode("candidate").drop_nulls()
    golds = golds.with_columns(pl.col("candidate").cast(pl.Int32), gold=True)
    rows = rows.join(golds, on=["item", "candidate"], how="left")
    rows = rows.with_columns(pl.col("gold").fill_null(False))
    stats = rows.group_by("item", "template").agg(**_measures()).drop_nulls("margin")
    if stats.height < scores.select("item", "template").n_unique():
        lost = rows.join(stats, on=["item", "template"], how="anti").sort("item", "template").row(0)
        raise ValueError(f"{where}: item {lost[0]} needs a correct and a wrong option")
    return stats.join(items.select("item", "relation"), on="item").sort("item", "template")


def with_bytes(
    scores: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame, prompts: pl.DataFrame
) -> pl.DataFrame:
    """Add `bytes` to SCORES: the length in UTF-8 of the sentence with each option."""
    texts = items.select("item", "relation", "subject", set="candidates").join(
        prompts.select("relation", "text", template="index"), on="relation"
    )
    around = [
        fill(text, subject, "", False).text
        for text, subject in texts.select("text", "subject").rows()
    ]
    texts = texts.with_columns(around=pl.Series(around, dtype=pl.String).str.len_bytes())
    labels = candidates.select("set", candidate="index", own=pl.col("label").str.len_bytes())
    joined = scores.join(texts, on=["item", "template"], how="left", maintain_order="left")
    joined = joined.join(labels, on=["set", "candidate"], how="left", maintain_order="left")
    return scores.with_columns(bytes=joined["around"] + joined["own"])


def with_priors(
    scores: pl.DataFrame, items: pl.DataFrame, seed: int, labels: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Add `corrected` to SCORES: the sum minus the option's mean over subjects of other folds.

    A prior is over the questions of one relation that share their options and template. With
    `labels`, the CANDIDATES, it is over all of one relation and template that offer the option,
    identified by its label. The value is null for all options of a question if one has no prior,
    that is, if all questions that offer it are in the question's fold.
    """
    known = items.select("item", "relation", set="candidates", who=SUBJECT)
    order = ["relation", "set", "template", "item", "candidate"]
    rows = scores.join(known, on="item").with_columns(option="candidate")
    if labels is not None:
        named = labels.select("set", candidate="index", option="label")
        rows = rows.drop("option").join(named, on=["set", "candidate"]).with_columns(set=pl.lit(""))
    rows = rows.sort(order)
    values = []
    for (relation, *_), group in rows.group_by(order[:3], maintain_order=True):
        subjects = group.unique("item", keep="first", maintain_order=True)["who"].to_list()
        fold = aggregations.folds(subjects, seed, str(relation))
        at = tuple(group[name].rank("dense").to_numpy() - 1 for name in ("item", "option"))
        grid = np.full((len(subjects), int(at[1].max()) + 1), np.nan)
        grid[at] = group["sum"]
        values.append(aggregations.prior_corrected(grid, fold)[at])
    key = ["item", "template", "candidate"]
    corrected = pl.Series("corrected", np.concatenate(values)).fill_nan(None)
    rows = rows.select(key).with_columns(corrected)
    lacks = pl.col("corrected").is_null().any().over("item", "template")
    rows = rows.with_columns(corrected=pl.when(~lacks).then("corrected"))
    return scores.join(rows, on=key, maintain_order="left")


def with_content_free(
    scores: pl.DataFrame, items: pl.DataFrame, content_free: pl.DataFrame
) -> pl.DataFrame:
    """Add `uninformed` to SCORES: the sum minus the option's mean over CONTENT_FREE's subjects.

    Null if an item's set was not asked with them.
    """
    means = without_subject(items, content_free)
    means = means.select("item", "template", "candidate", _mean="sum")
    key = ["item", "template", "candidate"]
    rows = scores.join(means, on=key, how="left", maintain_order="left")
    return scores.with_columns(uninformed=rows["sum"] - rows["_mean"])


def without_subject(items: pl.DataFrame, content_free: pl.DataFrame) -> pl.DataFrame:
    """Return the scores of an item's options without the subject: item, template, candidate, sum,
    count, answer_sum, answer_count, means over the subjects of CONTENT_FREE (for counts, the
    maximum). Items whose set was not asked with them are absent."""
    by = ["relation", "set"]
    means = content_free.group_by(*by, "template", "candidate").agg(
        ordered_mean(["sum", "answer_sum"]), pl.col("count", "answer_count").max()
    )
    rows = items.select("item", "relation", set="candidates").join(means, on=by)
    key = ["item", "template", "candidate"]
    return rows.select(*key, "sum", "count", "answer_sum", "answer_count").sort(key)


def choosable(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the ITEMS that have a wrong option; the others leave nothing to choose."""
    sizes = candidates.group_by(candidates="set").agg(options=pl.len())
    has_wrong = pl.col("answers").list.len() < pl.col("options")
    known = items.select("item", "answers", "candidates").join(sizes, on="candidates")
    return items.join(known.filter(has_wrong), on="item", how="semi", maintain_order="left")


def coinciding(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return CANDIDATES that equal another of their set except for case, whitespace and Unicode
    form: to a reader they are one answer, but only one of them is the gold."""
    read = [" ".join(normalize("NFKC", label).casefold().split()) for label in candidates["label"]]
    named = candidates.with_columns(read=pl.Series(read, dtype=pl.String))
    return named.filter(pl.len().over("set", "read") > 1).drop("read")


def check_answers(scores: pl.DataFrame, aggregation: str, where: str = "scores") -> None:
    """Raise ValueError if an answer has no scored token: its sum of 0 would be the maximum.

    This happens with BOS policy none if the answer is one token, and the first of its sentence.
    """
    lost = scores.filter(pl.col("answer_count") < 1)
    if aggregation == "conditional":
        lost = lost.filter(pl.col("continuation_sum").is_null())
    if lost.height:
        row = lost.sort("item", "template", "candidate").row(0, named=True)
        raise ValueError(
            f"{where}: item {row['item']}, template {row['template']}, option {row['candidate']}: "
            f"no token of the answer is scored ({lost.height} such rows), so {aggregation} is not "
            "defined; use sum, or BOS policy forced"
        )


def _measures() -> dict[str, pl.Expr]:
    """Return the measures of one item under one template, aggregated over its options."""
    score, gold = pl.col("score"), pl.col("gold")
    leads = score == score.max()
    right, wrong = score.filter(gold).max(), score.filter(~gold)
    weight = (score - score.max()).exp()
    ordered = gold.sort_by(score, pl.col("candidate"), descending=[True, False])
    return {
        "options": pl.len().cast(pl.Int32),
        "winner": pl.col("candidate").filter(leads).min(),
        "leaders": leads.sum().cast(pl.Int32),
        "leading": pl.col("candidate").filter(leads).sort(),
        "hit": ((leads & gold).sum() / leads.sum()).cast(pl.Float64),
        "first": ordered.first().cast(pl.Float64),
        "above": (wrong > right).sum().cast(pl.Int32),
        "tied": (wrong == right).sum().cast(pl.Int32),
        "level": (score.filter(gold) == right).sum().cast(pl.Int32),
        # rank sum of the correct options minus its minimum: the Mann-Whitney U statistic
        "inverted": score.rank("average", descending=True).filter(gold).sum()
        - gold.sum() * (gold.sum() + 1) / 2,
        "probability": ordered_sum(weight.filter(gold)) / ordered_sum(weight),
        "confidence": 1 / ordered_sum(weight),
        "brier": ordered_sum((weight / ordered_sum(weight) - gold / gold.sum()) ** 2),
        "margin": right - wrong.max(),
    }


def _check_complete(
    scores: pl.DataFrame,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    where: str,
    prompts: pl.DataFrame | None,
) -> None:
    """Check that every item has every option of its set under every template, and no others."""
    sizes = candidates.group_by(candidates="set").agg(pl.len().alias("expected"))
    wanted = items.select("item", "relation", "candidates").join(sizes, on="candidates", how="left")
    distinct = pl.col("candidate").n_unique()
    counts = scores.group_by("item", "template").agg(found=pl.len(), distinct=distinct)
    strangers = counts.join(wanted, on="item", how="anti").sort("item")
    if strangers.height:
        raise ValueError(f"{where}: item {strangers['item'][0]!r} is not in the benchmark")
    if prompts is None:
        grid = wanted.join(scores.select("template").unique(), how="cross")
    else:
        grid = wanted.join(prompts.select("relation", template="index"), on="relation")
    grid = grid.join(counts, on=["item", "template"], how="left")
    grid = grid.with_columns(pl.col("found", "distinct", "expected").fill_null(0))
    short = grid.filter(pl.any_horizontal(pl.col("found", "distinct") != pl.col("expected")))
    if short.height:
        row = short.sort("relation", "item", "template").row(0, named=True)
        raise ValueError(
            f"{where}: relation {row['relation']}, item {row['item']}, template {row['template']} "
            f"has {row['found']} scored options, its set {row['candidates']!r} has "
            f"{row['expected']} ({short.height} such rows); score the relation again"
        )
