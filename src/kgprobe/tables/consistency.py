"""Consistency across templates: items right under all, any or most of them, and agreement."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.estimate import estimate
from kgprobe.tables.results import Number

METRICS = ("agreement", "correct in any", "correct in most", "correct in all", "best template")
WORDS = {
    ("metric", "agreement"): "same answer in all templates, %",
    ("metric", "correct in any"): "right under any, %",
    ("metric", "correct in most"): "right under most, %",
    ("metric", "correct in all"): "right under all, %",
    ("metric", "best template"): "best template (an oracle), %",
}
CAPTION = (
    "Items that are asked with several templates. Most: more than half of them. The best template "
    "is selected on the test items: an oracle."
)


def estimates(
    of: Number,
    answers: pl.DataFrame,
    by: str = "",
    mean: Callable[..., dict[str, Any]] = estimate,
) -> Iterator[Number]:
    """Yield METRICS, in per cent, over items asked with several templates; nothing without any.
    `answers`: item, template, hit (0 to 1; under ties a probability), said (the top-ranked answer;
    no agreement if one is null). Templates are the same for all items, or for those with the same
    value of the column `by`, of which the best one is chosen. `mean`: estimates a proportion of
    items, from rows with their relation and cluster, if given."""
    rows = answers.with_columns(size=pl.len().over("item")).filter(pl.col("size") > 1)
    rows = rows.sort("item", "template")
    if not rows.height:
        return
    mean = partial(mean, is_proportion=True)
    who = [name for name in ("item", "relation", "cluster") if name in rows.columns]
    if not rows["said"].null_count():
        said = rows.group_by(who).agg(same=pl.col("said").n_unique() == 1).sort("item")
        yield of.but(metric="agreement", **mean(said, "same"))
    items, right = [], []
    for (size,), group in rows.group_by("size", maintain_order=True):
        chances = at_least(group["hit"].to_numpy().reshape(-1, size))
        right.append(chances[:, [1, size // 2 + 1, size]])
        items.append(group.gather_every(size).select(who))
    shares = pl.concat(items).hstack(pl.DataFrame(np.concatenate(right), ["any", "most", "all"]))
    for name in ("any", "most", "all"):
        yield of.but(metric=f"correct in {name}", **mean(shares, name))
    key = [by] if by else []
    means = rows.group_by(*key, "template").agg(ordered_mean("hit"))
    best = means.sort(*key, "hit", "template", descending=[*[False] * len(key), True, False])
    best = best.unique(key, keep="first", maintain_order=True) if by else best.head(1)
    hits = rows.join(best.drop("hit"), on=[*key, "template"], how="semi").sort("item")
    yield of.but(metric="best template", setting={"choice": "oracle"}, **mean(hits, "hit"))


def at_least(hits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return items x (templates + 1): the probability that at least that many templates are right.

    A hit under ties is a probability; those of several templates are treated as independent.
    """
    exactly = np.zeros((len(hits), hits.shape[1] + 1))
    exactly[:, 0] = 1.0
    for column in hits.T[:, :, None]:
        more = np.column_stack([np.zeros(len(hits)), exactly[:, :-1]])
        exactly = exactly * (1 - column) + more * column
    return np.asarray(exactly[:, ::-1].cumsum(axis=1)[:, ::-1])
