"""Whether a triple was answered: alpha of every triple and prompt at k, and pooled over prompts.

Source: docs/papers/attributes.md, Answers and Metrics. Answers come as FILLS (generated text, or
tokens at masks) or as SCORES over the candidates of the relation.

    per prompt   item template k kind gold alpha probability said
    pooled       item k kind gold pooling alpha

Gold `own`: the triple's object; `set`: the best placed object of the graph that has a label;
`linked`, where golds are linked to Wikidata: of these and of those that it alone states.
"""

from collections.abc import Iterable, Mapping, Sequence
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
ANSWER = ["item", "k", "kind", "gold"]
ALPHA = {
    "item": pl.String,
    "template": pl.Int32,
    "k": pl.Int32,
    "kind": pl.String,
    "gold": pl.String,
    "alpha": pl.Float64,
    "probability": pl.Float64,
    # the prompt's first answer, whatever the gold: to be compared with those of other prompts
    "said": pl.String,
}
FIRSTS = {"item": pl.String, "rule": pl.String, "verbose": pl.Boolean}
WHOLE = -1
#: Item -> the names of each of its golds, the own gold first.
Golds = Mapping[str, Sequence[Sequence[str]]]
#: Entity id -> its other names.
Aliases = Mapping[str, Sequence[str]]


def linked(items: pl.DataFrame) -> dict[str, int]:
    """Item -> place of the first of its answers that Wikidata alone states, or their number;
    empty where golds are not linked."""
    count = pl.col("meta").str.json_path_match("$.golds_wikidata").cast(pl.Int64)
    first = pl.col("answers").list.len().cast(pl.Int64) - count
    return dict(items.select("item", first=first).drop_nulls().rows())


def _names(golds: Iterable[tuple[str, str]], aliases: Aliases | None) -> list[list[str]]:
    """The names of (entity, label): the label, then its aliases."""
    return [names(label, entity, aliases or {}) for entity, label in golds]


def gold_names(
    examples: pl.DataFrame, aliases: Aliases | None = None
) -> dict[str, list[list[str]]]:
    """Item -> names of its golds in EXAMPLES that have a label, the own one first; without
    `aliases` labels alone."""
    columns = ("example", "position", "golds", "gold_labels")
    return {
        f"{example}#{position}": _names(
            ((e, label) for e, label in zip(golds, labels, strict=True) if label is not None),
            aliases,
        )
        for example, position, golds, labels in examples.select(columns).rows()
    }


def linked_names(
    items: pl.DataFrame, candidates: pl.DataFrame, aliases: Aliases | None = None
) -> dict[str, list[list[str]]]:
    """Item -> names of the answers that Wikidata alone states; empty where golds are not linked."""
    rows, first = candidates.select("set", "index", "id", "label").rows(), linked(items)
    known = {(own, index): (entity, label) for own, index, entity, label in rows}
    return {
        item: _names((known[own, answer] for answer in answers[first[item] :]), aliases)
        for item, own, answers in items.select("item", "candidates", "answers").rows()
        if item in first
    }


def _readings(
    rows: pl.DataFrame, first: Mapping[str, int]
) -> tuple[pl.DataFrame, dict[str, pl.Expr]]:
    """`rows` beside `first` (`linked`), and by gold which of them count; `gold`: a gold's place
    among those of its item, null where it is none."""
    schema = {"item": pl.String, "first": pl.Int64}
    places = pl.DataFrame(list(first.items()), schema=schema, orient="row")
    place, end = pl.col("gold"), pl.col("first").fill_null(1 << 40)
    found = {"own": place == 0, "set": place < end}
    return (
        rows.join(places, on="item", how="left"),
        found | ({"linked": place >= 0} if first else {}),
    )


def of_masks(
    fills: pl.DataFrame, golds: pl.DataFrame, first: Mapping[str, int] | None = None
) -> pl.DataFrame:
    """Alpha per prompt of a masked model, from FILLS and FILL_GOLDS.

    Token j of a gold is right at k when it is among the first k at mask j, ties by expectation.
    `exact`: all tokens right; `token_mean`: share of right tokens (the paper's rule for BERT and
    RoBERTa). Items whose own gold was left out have no rows. `first`: `linked`.
    """
    asked = golds.filter((pl.col("gold") == 0).any().over("item", "template"))
    best, worst = (asked[name].cast(pl.Int64).to_numpy() for name in ("best", "worst"))
    hits = pl.concat(
        asked.with_columns(pl.Series("hit", hit_at(k, best, worst)), k=pl.lit(k)) for k in KS
    )
    each = hits.group_by("item", "template", "k", "gold").agg(
        exact=pl.col("hit").product(), token_mean=ordered_mean("hit")
    )
    each, readings = _readings(each, first or {})
    kinds, key = ["exact", "token_mean"], ["item", "template", "k"]
    long = pl.concat(
        each.filter(counts).group_by(key).agg(pl.col(kinds).max()).with_columns(gold=pl.lit(gold))
        for gold, counts in readings.items()
    ).unpivot(kinds, index=[*key, "gold"], variable_name="kind", value_name="alpha")
    own = golds.filter(gold=0, position=0)
    sure = fills.filter(position=WHOLE, rank=1).join(
        own, on=["item", "template", "masks"], how="semi"
    )
    sure = sure.select("item", "template", probability="logprob", said="text")
    return _alpha(long.join(sure, on=["item", "template"], how="left"))


def of_texts(fills: pl.DataFrame, golds: Golds, more: Golds | None = None) -> pl.DataFrame:
    """Alpha per prompt of a model that writes: the first k texts against the names of the gold.

    `golds`: `gold_names`; `more`: `linked_names`. `exact`: equal after the rules of
    metrics/matching; `verbatim`: letter by letter the label. Ks beyond the answers that a server
    gives (a chat server gives one) have no rows.
    """
    rows: list[tuple[object, ...]] = []
    whole = fills.filter(position=WHOLE).sort("item", "template", "masks", "rank")
    # single tokens count, too: phrases that begin with different tokens may come out alike
    most = max(fills["rank"], default=0)
    grouped = whole.group_by("item", "template", maintain_order=True).agg("text", "logprob")
    for item, template, texts, logprobs in grouped.rows():
        readings = {"own": golds[item][:1], "set": golds[item]}
        if more:
            readings["linked"] = [*golds[item], *more[item]]
        for gold, own in readings.items():
            labels = {found[0] for found in own}
            verbatim = next((n for n, text in enumerate(texts, 1) if text in labels), 0)
            places = {"exact": first_match(texts, chain.from_iterable(own)), VERBATIM: verbatim}
            rows += [
                (item, template, k, kind, gold, float(0 < place <= k), logprobs[0],
                 normalized(texts[0]))
                for k in KS if k <= most or most >= max(KS)
                for kind, place in places.items()
            ]  # fmt: skip
    return pl.DataFrame(rows, schema=ALPHA, orient="row")


def of_candidates(scores: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Alpha per prompt from SCORES: the rank of the gold among the objects of its relation; the
    other true answers are rivals of the own one."""
    golds = items.select(
        "item", candidate="answers", gold=pl.int_ranges(pl.col("answers").list.len())
    )
    golds = golds.explode("candidate", "gold").with_columns(pl.col("candidate").cast(pl.Int32))
    rows = scores.select("item", "template", "candidate", score=AGGREGATIONS["sum"])
    rows = rows.join(golds, on=["item", "candidate"], how="left")
    rows, readings = _readings(rows, linked(items))
    score, parts = pl.col("score"), []
    for gold, counts in readings.items():
        value = score.filter(counts).max()
        found = rows.group_by("item", "template").agg(
            above=(score > value).sum().cast(pl.Int64),
            level=(score == value).sum().cast(pl.Int64),
            probability=score.max(),
            said=pl.col("candidate").filter(score == score.max()).min(),
        )
        best = found["above"].to_numpy() + 1
        worst = best + np.maximum(found["level"].to_numpy(), 1) - 1
        how = {"kind": pl.lit("exact"), "gold": pl.lit(gold)}
        parts += [
            found.with_columns(pl.Series("alpha", hit_at(k, best, worst)), k=pl.lit(k), **how)
            for k in KS
        ]
    return _alpha(pl.concat(parts))


def _alpha(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select([pl.col(name).cast(dtype) for name, dtype in ALPHA.items()])


def pooled(alphas: pl.DataFrame) -> pl.DataFrame:
    """Alpha of a triple under every pooling of its prompts: `best`, `mean`, `base` (the first that
    was asked), `confident` (whose first prediction is the most probable, ties to the first)."""
    sure = pl.col("probability").fill_null(float("-inf"))
    found = alphas.sort("template").group_by(ANSWER).agg(
        best=pl.col("alpha").max(), mean=ordered_mean("alpha"), base=pl.col("alpha").first(),
        confident=pl.col("alpha").get(sure.arg_max()),
    )  # fmt: skip
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


def firsts(fills: pl.DataFrame, golds: Golds) -> pl.DataFrame:
    """FIRSTS of every item and prompt against the own gold: `rule` is the first of the WAYS of
    matching in which the text is right, or ""; `verbose`: wrong, it holds a name among others."""
    rows = []
    for item, text in fills.filter(position=WHOLE, rank=1).select("item", "text").rows():
        label, *aliases = golds[item][0]
        rule = way(text, label, aliases)
        rows.append((item, rule, not rule and contained(text, golds[item][0])))
    return pl.DataFrame(rows, schema=FIRSTS, orient="row")
