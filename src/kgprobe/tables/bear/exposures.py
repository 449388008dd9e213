"""Recall and margin against how often a fact was seen, and against training steps.

Control models are shown each fact a number of times that is known (EXPOSED). By it stand accuracy,
margin (log-likelihood of the gold less that of the best other option, nats, mean over templates)
and AUC: the probability that such a fact has a larger margin than one that was never shown. The
crossing is the least number of times whose AUC reaches a given one.

A number is the mean over the models of a kind, one of each seed. Its interval is a bootstrap that
draws facts, each with what all models make of it, and models: a percentile interval of both. Where
no draw differs (all right, all above), Wilson's and Newcombe's stand in its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.bootstrap import DRAWS, bootstrap, of_draws
from kgprobe.metrics.intervals import Interval, resamples, wilson
from kgprobe.metrics.ranking import auc, pairs_won
from kgprobe.metrics.sums import ordered_mean
from kgprobe.sampling import hash_key
from kgprobe.tables.report.calibration import auc_interval
from kgprobe.tables.results import Number

Numbers = NDArray[np.float64]
#: configuration of the method cloze that is shown: a mask for every token, their mean
CLOZE = {"masks": "multi", "pooling": "mean"}


@dataclass(frozen=True)
class Answered:
    """What one model made of its facts by one method; `frame`: fact, exposures, hit (0 to 1),
    margin, targets (sentences in which the fact's object was asked for)."""

    kind: str
    method: str
    frame: pl.DataFrame


def of_scores(judged: pl.DataFrame) -> pl.DataFrame:
    """item, hit and margin from judged SCORES, means over templates."""
    return judged.group_by("item").agg(ordered_mean(["hit", "margin"])).sort("item")


def of_ranks(ranks: pl.DataFrame, tops: pl.DataFrame) -> pl.DataFrame:
    """The same from RANKS and TOPS of questions with one gold, under CLOZE."""
    key = ["item", "template"]
    chosen = [pl.col(name) == value for name, value in CLOZE.items()]
    golds = ranks.filter(chosen).select(*key, "gold", "best", "worst", own="score")
    others = tops.filter(chosen).join(golds, on=key).filter(pl.col("candidate") != pl.col("gold"))
    best = others.group_by(key).agg(other=pl.col("score").max())
    hit = pl.when(best=1).then(1 / (pl.col("worst") - pl.col("best") + 1)).otherwise(0.0)
    judged = golds.join(best, on=key).select(
        *key, hit=hit.cast(pl.Float64), margin=pl.col("own") - pl.col("other")
    )
    return of_scores(judged)


def crossing(areas: Mapping[int, float], least: float) -> int | None:
    """The least count whose AUC is `least` or more; None where there is none.

    >>> crossing({1: 0.6, 4: 0.95, 2: 0.97}, 0.95)
    2
    """
    return min((count for count, area in areas.items() if area >= least), default=None)


def numbers(answered: Sequence[Answered], least: float, seed: int) -> list[Number]:
    """All numbers of the control models, by kind, method and times shown.

    accuracy (per cent), margin, AUC, times a target; the crossing, with the draws that reach it as
    its fraction and no interval where its upper bound is beyond all counts.
    """
    found = []
    for kind, method in dict.fromkeys((one.kind, one.method) for one in answered):
        frames = [one.frame for one in answered if (one.kind, one.method) == (kind, method)]
        base = Number(
            benchmark="world_exposed",
            model=f"control-exposed-{kind}",
            prompt="templates",
            method=method,
            setting=CLOZE if method == "cloze" else {},
        )
        found += _of_kind(_Models(frames, seed), base, least)
    return found


class _Models:
    """The models of a kind and their draws: facts x models, as they are drawn together."""

    def __init__(self, frames: Sequence[pl.DataFrame], seed: int) -> None:
        facts = sorted({fact for frame in frames for fact in frame["fact"]})
        frames = [pl.DataFrame({"fact": facts}).join(f, on="fact", how="left") for f in frames]
        lost = [
            fact for frame in frames for fact in frame.filter(pl.col("margin").is_null())["fact"]
        ]
        if lost:
            raise ValueError(f"{len(lost)} facts were not asked of every model: {lost[0]}")
        self.shown = np.stack([f["exposures"].to_numpy() for f in frames])
        self.values = {
            name: np.stack([f[name].to_numpy().astype(float) for f in frames])
            for name in ("hit", "margin", "targets")
        }
        self.facts = _drawn(len(facts), hash_key(seed, "exposures", "facts"))
        self.models = _drawn(len(frames), hash_key(seed, "exposures", "models"))

    @property
    def counts(self) -> list[int]:
        """Times that a fact was shown, 0 among them."""
        return [int(count) for count in np.unique(self.shown)]

    def size(self, count: int) -> int:
        """Distinct facts that were shown so often to one of the models."""
        return int((self.shown == count).any(axis=0).sum())

    def mean(self, name: str, count: int) -> tuple[float, Numbers]:
        """Mean over models of the mean over their facts shown so often, and its draws."""
        own, drawn = [], []
        for shown, values in zip(self.shown, self.values[name], strict=True):
            inside = shown == count
            weights = self.facts[:, inside]
            own.append(values[inside].mean())
            with np.errstate(invalid="ignore"):
                drawn.append(np.einsum("df,f->d", weights, values[inside]) / weights.sum(axis=1))
        return float(np.mean(own)), self._over_models(drawn)

    def area(self, count: int) -> tuple[float, Numbers]:
        """Mean over models of the AUC of facts shown so often against those never shown."""
        own, drawn = [], []
        for shown, margins in zip(self.shown, self.values["margin"], strict=True):
            above, below = shown == count, shown == 0
            own.append(auc(margins[above], margins[below]))
            won = pairs_won(margins[above], margins[below])
            up, down = self.facts[:, above], self.facts[:, below]
            sums = np.einsum("dn,dn->d", np.einsum("dp,pn->dn", up, won), down)
            with np.errstate(invalid="ignore"):
                drawn.append(sums / (up.sum(axis=1) * down.sum(axis=1)))
        return float(np.mean(own)), self._over_models(drawn)

    def _over_models(self, drawn: Sequence[Numbers]) -> Numbers:
        """Means over the drawn models; NaN in draws where one of them has no such fact."""
        values = np.column_stack(drawn)
        used = self.models > 0
        lost = (used & np.isnan(values)).any(axis=1)
        sums = (self.models * np.where(used, values, 0.0)).sum(axis=1)
        return np.where(lost, np.nan, sums / self.models.sum(axis=1))


def _drawn(n: int, seed: int) -> Numbers:
    """draws x n: how often each of n is drawn."""
    return resamples(np.zeros(n, dtype=np.int64), DRAWS, seed).astype(float)


def _of_kind(models: _Models, base: Number, least: float) -> list[Number]:
    found: list[Number] = []
    areas: dict[int, float] = {}
    drawn: dict[int, Numbers] = {}
    for count in models.counts:
        own = base.but(setting={"exposures": count}, n=models.size(count))
        hit, hits = models.mean("hit", count)
        told = {
            "accuracy": (100 * hit, 100 * hits),
            "margin": models.mean("margin", count),
            "times a target": models.mean("targets", count),
        }
        if count:
            told["AUC"] = models.area(count)
            areas[count], drawn[count] = told["AUC"]
        for metric, (value, draws) in told.items():
            bounds = of_draws(draws[~np.isnan(draws)], "cluster bootstrap")
            if metric == "accuracy" and bounds is None:  # all right, or all wrong
                bounds = Interval(*wilson(value * own.n / 100, own.n), "wilson").times(100)
            if metric == "AUC" and bounds is None:
                bounds = auc_interval(value, own.n, models.size(0))
            if metric == "times a target":
                bounds = None  # counted, not sampled
            found.append(own.but(metric=metric, value=value, interval=bounds))
    return [*found, _crossing(areas, drawn, least, base.but(n=models.shown.shape[1]))]


def _crossing(
    areas: Mapping[int, float], drawn: Mapping[int, Numbers], least: float, base: Number
) -> Number:
    """The crossing of the means, and its percentile bounds over the draws."""
    counts = np.array(sorted(drawn), dtype=float)
    draws = np.column_stack([drawn[int(count)] for count in counts])
    draws = draws[~np.isnan(draws).any(axis=1)]
    reached = draws >= least
    first = np.where(reached.any(axis=1), counts[reached.argmax(axis=1)], np.inf)
    low, high = np.quantile(first, [0.025, 0.975], method="inverted_cdf")
    bounds = Interval(float(low), float(high), "cluster bootstrap") if np.isfinite(high) else None
    value = crossing(areas, least)
    return base.but(
        metric="crossing",
        value=None if value is None else float(value),
        interval=bounds if value is not None else None,
        numerator=float(np.isfinite(first).sum()),
        denominator=float(len(first)),
    )


def of_steps(model: str, step: int, asked: Mapping[str, Any], judged: pl.DataFrame) -> list[Number]:
    """accuracy and margin of a checkpoint; `model`: what its training makes, `asked`: the other
    dimensions of its probe. Intervals: bootstrap of the items within their relation."""
    relations = judged.select("item", "relation").unique()
    items = of_scores(judged).join(relations, on="item").sort("item")
    values = items.select(100 * pl.col("hit"), "margin").to_numpy()
    boot = bootstrap(values, strata=items["relation"].to_list())
    base = Number(**{**asked, "model": model}, setting={"step": step}, n=items.height)
    return [
        base.but(metric=name, value=boot.mean(i), interval=of_draws(boot.draws(i)))
        for i, name in enumerate(("accuracy", "margin"))
    ]
