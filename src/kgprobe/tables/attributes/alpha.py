"""Whether a triple was answered: alpha of every triple and prompt at k, and pooled over prompts.

Source: docs/papers/attributes.md, Answers and Metrics. Answers come as FILLS (generated text, or
tokens at masks) or as SCORES over the candidates of the relation.

    per prompt   item template k alpha_kind gold alpha probability said
    pooled       item k alpha_kind gold pooling alpha
"""

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from math import comb

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.attributes import KEYS as KS
from kgprobe.metrics.matching import VERBATIM, contained, first_match, names, normalized, way
from kgprobe.metrics.ranking import hit_at
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.answers import AGGREGATIONS

#: `best` chooses the prompt by looking at the gold: an oracle.
POOLINGS = ("best", "mean", "base", "confident")
ANSWER = ["item", "k", "alpha_kind", "gold"]
ALPHA = {
    "item": pl.String,
    "template": pl.Int32,
    "k": pl.Int32,
    "alpha_kind": pl.String,
    "gold": pl.String,
    "alpha": pl.Float64,
    "probability": pl.Float64,
    # the prompt's first answer, whatever the gold: to be compared with those of other prompts
    "said": pl.String,
}
_PLACES = {"item": pl.String, "_first": pl.Int64}
FIRSTS = {"item": pl.String, "rule": pl.String, "verbose": pl.Boolean}
WHOLE = -1
#: Item -> the names of each of its golds, the own gold first.
Golds = Mapping[str, Sequence[Sequence[str]]]
#: Entity id -> its other names.
Aliases = Mapping[str, Sequence[str]]


def linked(items: pl.DataFrame) -> dict[str, int]:
    """Item -> place of the first of its answers that Wikidata alone states, where golds are linked
    (the end of its answers where there is none); empty where they are not.
    """
    found = {}
    for item, answers, meta in items.select("item", "answers", "meta").rows():
        told = json.loads(meta)
        if "golds_wikidata" in told:
            found[item] = len(answers) - told["golds_wikidata"]
    return found


def linked_names(
    items: pl.DataFrame, candidates: pl.DataFrame, aliases: Aliases | None = None
) -> dict[str, list[list[str]]]:
    """Item -> names of the answers that Wikidata alone states; empty where golds are not linked."""
    columns = candidates.select("set", "index", "id", "label").rows()
    known = {(name, index): (entity, label) for name, index, entity, label in columns}
    first = linked(items)
    return {
        item: [
            names(label, entity, aliases or {})
            for entity, label in (known[own, answer] for answer in answers[first[item] :])
        ]
        for item, own, answers in items.select("item", "candidates", "answers").rows()
        if item in first
    }


def of_masks(
    fills: pl.DataFrame, golds: pl.DataFrame, apart: Mapping[str, int] | None = None
) -> pl.DataFrame:
    """Alpha per prompt of a masked model, from FILLS and FILL_GOLDS.

    Token j of a gold is right at k when it is among the first k at mask j; a tie that straddles k
    counts with its expectation. `exact`: all tokens right; `token_mean`: share of right tokens (the
    paper's rule for BERT and RoBERTa). `set` takes the best of the golds, each with as many masks
    as it has tokens. Items whose own gold (number 0) was left out have no rows. `apart` (`linked`):
    from which gold on an item's golds count for the reading `linked` alone.
    """
    places = pl.DataFrame(list((apart or {}).items()), schema=_PLACES, orient="row")
    asked = golds.filter((pl.col("gold") == 0).any().over("item", "template"))
    best, worst = (asked[name].cast(pl.Int64).to_numpy() for name in ("best", "worst"))
    parts = []
    for k in KS:
        hits = asked.with_columns(pl.Series("hit", hit_at(k, best, worst)), k=pl.lit(k))
        found = hits.group_by("item", "template", "k", "gold").agg(
            exact=pl.col("hit").product(), token_mean=ordered_mean("hit")
        )
        parts.append(found.filter(gold=0).with_columns(gold=pl.lit("own")))
        known = found.join(places, on="item", how="left")
        own = known.filter(pl.col("_first").is_null() | (pl.col("gold") < pl.col("_first")))
        for name, some in {"set": own, "linked": known if apart else known.clear()}.items():
            best_gold = some.group_by("item", "template", "k").agg(
                pl.col("exact", "token_mean").max()
            )
            parts.append(best_gold.with_columns(gold=pl.lit(name)))
    long = pl.concat(parts, how="diagonal").unpivot(
        ["exact", "token_mean"],
        index=["item", "template", "k", "gold"],
        variable_name="alpha_kind",
        value_name="alpha",
    )
    first = golds.filter(gold=0, position=0)
    sure = fills.filter(position=WHOLE, rank=1)
    sure = sure.join(first, on=["item", "template", "masks"], how="semi")
    sure = sure.select("item", "template", probability="logprob", said="text")
    return _alpha(long.join(sure, on=["item", "template"], how="left"))


def of_texts(fills: pl.DataFrame, golds: Golds, more: Golds | None = None) -> pl.DataFrame:
    """Alpha per prompt of a model that writes: the first k texts against the names of the gold.

    `golds`: item -> names of each of its golds, the own first (`gold_names`). `exact`: equal after
    the rules of metrics/matching; `verbatim`: letter by letter the label. That a text contains a
    name is counted by `firsts` and is never right. Ks beyond the answers that a server gives (a
    chat server gives one) have no rows. `more` (`linked_names`): further golds for the reading
    `linked` alone.
    """
    rows: list[tuple[object, ...]] = []
    whole = fills.filter(position=WHOLE).sort("item", "template", "masks", "rank")
    # single tokens count, too: phrases that begin with different tokens may come out alike
    most = max(fills["rank"], default=0)
    grouped = whole.group_by("item", "template", maintain_order=True).agg("text", "logprob")
    for item, template, texts, logprobs in grouped.rows():
        labels, said = [found[0] for found in golds[item]], normalized(texts[0])
        places = {
            ("exact", "own"): first_match(texts, golds[item][0]),
            ("exact", "set"): first_match(texts, chain.from_iterable(golds[item])),
            (VERBATIM, "own"): _place(texts, labels[:1]),
            (VERBATIM, "set"): _place(texts, labels),
        }
        if more:
            every = [*golds[item], *more[item]]
            spoken = [found[0] for found in every]
            places["exact", "linked"] = first_match(texts, chain.from_iterable(every))
            places[VERBATIM, "linked"] = _place(texts, spoken)
        for k in (k for k in KS if k <= most or most >= max(KS)):
            for (kind, gold), place in places.items():
                right = float(0 < place <= k)
                rows.append((item, template, k, kind, gold, right, logprobs[0], said))
    return pl.DataFrame(rows, schema=ALPHA, orient="row")


def _place(texts: Sequence[str], labels: Sequence[str]) -> int:
    """Rank (from 1) of the first text that is one of the labels, 0 when none is."""
    return next((n for n, text in enumerate(texts, 1) if text in labels), 0)


def of_candidates(scores: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Alpha per prompt from SCORES: the rank of the gold among the objects of its relation.

    No length leaks, and nothing is generated: a table of its own. `own`: the other true answers
    count as rivals; `set`: the best placed of them counts; `linked`: of them and of those that
    Wikidata alone states, where golds are linked.
    """
    first = linked(items)
    rows = scores.select("item", "template", "candidate", score=AGGREGATIONS["sum"])
    golds = items.select(
        "item", candidate="answers", own=pl.col("answers").list.first(),
        place=pl.int_ranges(pl.col("answers").list.len()),
        first=pl.col("item").replace_strict(first, default=None, return_dtype=pl.Int64)
        if first else pl.lit(None, pl.Int64),
    )  # fmt: skip
    golds = golds.explode("candidate", "place").with_columns(
        pl.col("candidate").cast(pl.Int32),
        own=pl.col("own") == pl.col("candidate"),
        set=pl.col("first").is_null() | (pl.col("place") < pl.col("first")),
    )
    rows = rows.join(golds, on=["item", "candidate"], how="left")
    parts = []
    readings = {"own": pl.col("own").fill_null(False), "set": pl.col("set").fill_null(False)}
    if first:
        readings["linked"] = pl.col("own").is_not_null()
    for name, is_gold in readings.items():
        value = pl.col("score").filter(is_gold).max()
        found = rows.group_by("item", "template").agg(
            above=(pl.col("score") > value).sum().cast(pl.Int64),
            level=(pl.col("score") == value).sum().cast(pl.Int64),
            probability=pl.col("score").max(),
            said=pl.col("candidate").filter(pl.col("score") == pl.col("score").max()).min(),
        )
        best = found["above"].to_numpy() + 1
        worst = best + np.maximum(found["level"].to_numpy(), 1) - 1
        for k in KS:
            alpha = pl.Series("alpha", hit_at(k, best, worst))
            how = {"k": pl.lit(k), "alpha_kind": pl.lit("exact"), "gold": pl.lit(name)}
            parts.append(found.with_columns(alpha, **how))
    return _alpha(pl.concat(parts))


def _alpha(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select([pl.col(name).cast(dtype) for name, dtype in ALPHA.items()])


def pooled(alphas: pl.DataFrame) -> pl.DataFrame:
    """Alpha of a triple under every pooling of its prompts (docs/papers/attributes.md, Metrics).

    `best`: maximum, an oracle; `mean`; `base`: the first prompt that the model was asked;
    `confident`: the prompt whose own first prediction is the most probable, ties to the first.
    """
    ordered = alphas.sort("template")
    sure = pl.col("probability").fill_null(float("-inf"))
    found = ordered.group_by(ANSWER).agg(
        best=pl.col("alpha").max(),
        mean=ordered_mean("alpha"),
        base=pl.col("alpha").first(),
        confident=pl.col("alpha").get(sure.arg_max()),
    )
    return found.unpivot(
        list(POOLINGS), index=ANSWER, variable_name="pooling", value_name="alpha"
    ).sort(*ANSWER, "pooling")


def best_of(values: NDArray[np.float64], size: int) -> float:
    """Expected maximum of `size` of the values, drawn without replacement: closed form.

    The i-th smallest of n is the maximum of C(i - 1, size - 1) of the C(n, size) subsets.

    >>> best_of(np.array([0.0, 0.0, 1.0]), 2)
    0.6666666666666666
    """
    n = len(values)
    if not 1 <= size <= n:
        raise ValueError(f"a subset of {size} of {n} prompts")
    ordered = np.sort(values)
    return sum(float(value) * comb(i, size - 1) for i, value in enumerate(ordered)) / comb(n, size)


def by_number_of_prompts(alphas: pl.DataFrame) -> pl.DataFrame:
    """(k, alpha_kind, gold, prompts, alpha, triples): mean best alpha against number of prompts.

    Numbers are 1, 2, 4, ... and all; triples with fewer prompts than a number are left out of it.
    """
    grouped = alphas.group_by(ANSWER).agg("alpha")
    found: dict[tuple[object, ...], list[float]] = {}
    for _, k, kind, gold, values in grouped.rows():
        own = np.asarray(values)
        sizes = {2**power for power in range(len(own).bit_length())} | {len(own)}
        for size in sizes:
            found.setdefault((k, kind, gold, size), []).append(best_of(own, size))
    rows = [(*key, float(np.mean(v)), len(v)) for key, v in sorted(found.items(), key=str)]
    columns = ("k", "alpha_kind", "gold", "prompts", "alpha", "triples")
    return pl.DataFrame(rows, schema=list(columns), orient="row")


def firsts(fills: pl.DataFrame, golds: Golds) -> pl.DataFrame:
    """FIRSTS: the first text of every item and prompt against the own gold.

    `rule`: the first of the WAYS of matching in which it is right, "" where it is wrong; `verbose`:
    it is wrong, and holds a name of the gold among other words.
    """
    rows = []
    for item, text in fills.filter(position=WHOLE, rank=1).select("item", "text").rows():
        label, *aliases = golds[item][0]
        rule = way(text, label, aliases)
        rows.append((item, rule, not rule and contained(text, golds[item][0])))
    return pl.DataFrame(rows, schema=FIRSTS, orient="row")


def gold_names(
    examples: pl.DataFrame, aliases: Aliases | None = None
) -> dict[str, list[list[str]]]:
    """Item -> names of its golds, the own one first: the label of each, then its aliases.

    `examples`: EXAMPLES, whose golds are all objects of the graph; those without label have no
    name. `aliases`: None takes labels alone.
    """
    columns = ("example", "position", "golds", "gold_labels")
    return {
        f"{example}#{position}": [
            names(label, entity, aliases or {})
            for entity, label in zip(golds, labels, strict=True)
            if label is not None
        ]
        for example, position, golds, labels in examples.select(columns).rows()
    }
