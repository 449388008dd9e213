"""The same scores under other reductions, with the controls that belong to a gain.

An option's usual score, BEAR's own, is the sum of its sentence's terms. Beside it stand the mean
over tokens, the mean over bytes, the answer's part, and the sum corrected by a prior: the option's
mean over questions of its relation about the subjects of other folds. Setting `reduction` is absent
where the sum is meant.

A gain means something only beside what it does where nothing was learnt: untaught facts of control
models, and golds dealt out anew within their relation (the mean of 200 permutations, and what the
distributions of golds and answers alone give). Both stand for all items and for a part with skewed
golds: of the r-th answer of a relation (in seeded order) 1/r of its questions stay, and the prior
is that of this part.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.bootstrap import DRAWS, bootstrap
from kgprobe.metrics.intervals import Interval, percentile
from kgprobe.metrics.ranking import auc
from kgprobe.metrics.reductions import PERMUTATIONS, permuted, zipf_sample
from kgprobe.metrics.sums import ordered_mean
from kgprobe.sampling import hash_key
from kgprobe.tables.answers import (
    OF_ANSWERS,
    PRIOR,
    Probe,
    coinciding,
    judge,
    with_bytes,
    with_priors,
)
from kgprobe.tables.results import Number

#: reductions beside the paper's own, in the order of printing
OTHERS = ("mean", "byte_mean", "answer_only", PRIOR)
#: the part of the items whose golds are skewed
SKEWED = "skewed"
Bools = NDArray[np.bool_]
#: (reduction, part) -> judged answers; "" is the sum, and all items
Readings = Mapping[tuple[str, str], pl.DataFrame]


@dataclass(frozen=True)
class Questions:
    """What several probes were asked."""

    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame
    seed: int = 0
    resamples: int = DRAWS


def readings(own: pl.DataFrame, scores: pl.DataFrame, asked: Questions) -> Readings:
    """What SCORES say under every reduction, of all items and of the skewed part.

    `own`: judged by the sum. A reduction is absent where it is not defined: the answer's part when
    no token of an answer is scored.
    """
    items, candidates, seed = asked.items, asked.candidates, asked.seed
    ready = with_priors(with_bytes(scores, items, candidates, asked.prompts), items, seed)
    is_scored = (scores["answer_count"] > 0).all()
    found = {("", ""): own}
    for name in OTHERS:
        if is_scored or name not in OF_ANSWERS:
            found[name, ""] = judge(ready, items, candidates, name)
    part = items.filter(skewed(items, seed))
    for (name, _), answers in list(found.items()):
        found[name, SKEWED] = answers.join(part.select("item"), on="item", how="semi")
    fewer = with_priors(scores.join(part.select("item"), on="item", how="semi"), part, seed)
    found[PRIOR, SKEWED] = judge(fewer, part, candidates, PRIOR)
    return found


def skewed(items: pl.DataFrame, seed: int) -> pl.Series:
    """Which of ITEMS are in the part with skewed golds."""
    rows = items.with_row_index("_at").sort("relation", "item")
    kept: list[int] = []
    for (relation,), own in rows.group_by("relation", maintain_order=True):
        answers = own["answers"].list.first().cast(pl.String).to_list()
        chosen = zipf_sample(answers, own["item"].to_list(), seed, str(relation))
        kept += own["_at"].filter(pl.Series(chosen)).to_list()
    return pl.int_range(items.height, eager=True).is_in(kept)


def numbers(
    asked: Questions,
    answered: Sequence[tuple[Probe, Readings]],
    halves: tuple[Bools, Bools] | None = None,
) -> Iterator[Number]:
    """Every number of the readings. `halves`: which items, in their order, are taught, untaught.

    Metrics: accuracy (but of the sum on all items, which the paper's own table has), gain (over the
    sum, paired), taught, untaught, AUC, "permuted golds", "permuted golds, expected"; "without
    prior" counts items that have none, "coinciding options" those that read the same as another.
    Slices: "", "skewed", of a gain "taught" and "untaught".
    """
    double = coinciding(asked.candidates).height
    if answered and double:
        of = Number(benchmark=answered[0][0].benchmark, metric="coinciding options", value=double)
        yield of.but(n=asked.candidates.height)
    for probe, found in answered:
        for (name, part), answers in found.items():
            yield from _reading(asked, probe, found["", part], answers, name, part)
            if halves and name and not part:
                yield from _halves(asked, probe, found["", ""], answers, name, halves)


def _of(probe: Probe, name: str, **more: Any) -> Number:
    return Number(setting={"reduction": name} if name else {}, **probe.asked, **more)


def _reading(
    asked: Questions, probe: Probe, own: pl.DataFrame, answers: pl.DataFrame, name: str, part: str
) -> Iterator[Number]:
    """Accuracy and gain of one reduction on one part, and what permuted golds give."""
    of = _of(probe, name, slice=part)
    if lost := own["item"].n_unique() - answers["item"].n_unique():
        yield of.but(metric="without prior", value=lost, n=own["item"].n_unique())
    if not answers.height:
        return
    if name or part:
        yield from _accuracy(asked, of, own, answers)
    yield from _permuted(asked, of, answers)


def _accuracy(
    asked: Questions, of: Number, own: pl.DataFrame, answers: pl.DataFrame
) -> Iterator[Number]:
    """Accuracy, and its gain over the paper's own reduction on the same items."""
    both = _by_item(answers).join(_by_item(own), on="item", suffix="_own", maintain_order="left")
    boot = bootstrap(
        both.select("hit_own", "hit").to_numpy(),
        both["relation"].to_list(),
        seed=asked.seed,
        draws=asked.resamples,
    )
    of = of.but(n=both.height)
    interval = boot.interval(1, None, answers["template"].n_unique() == 1).times(100)
    yield of.but(metric="accuracy", value=100 * boot.mean(1), interval=interval)
    if of.setting:
        value, found = boot.difference(1, 0)
        yield of.but(metric="gain", value=100 * value, interval=found and found.times(100))


def _halves(
    asked: Questions,
    probe: Probe,
    own: pl.DataFrame,
    answers: pl.DataFrame,
    name: str,
    halves: tuple[Bools, Bools],
) -> Iterator[Number]:
    """What a reduction does to taught and to untaught facts, and how well it tells them apart."""
    margins = []
    for half, chosen in zip(("taught", "untaught"), halves, strict=True):
        inside = asked.items.sort("item").filter(pl.Series(chosen)).select("item")
        mine, theirs = (a.join(inside, on="item", how="semi") for a in (answers, own))
        if not mine.height:
            return
        margins.append(_by_item(mine)["margin"].to_numpy())
        for number in _accuracy(asked, _of(probe, name), theirs, mine):
            if number.metric == "accuracy":
                yield number.but(metric=half)
            else:
                yield number.but(slice=half)
    n = sum(len(one) for one in margins)
    yield _of(probe, name, metric="AUC", value=auc(*margins), n=n)


def _by_item(answers: pl.DataFrame) -> pl.DataFrame:
    """item, relation, hit, margin: means over templates, in the order of items."""
    grouped = answers.group_by("item", "relation").agg(ordered_mean(["hit", "margin"]))
    return grouped.sort("item")


def _permuted(asked: Questions, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """Accuracy with the golds dealt out anew within a relation and set of options."""
    items = asked.items.select("item", "answers", set="candidates")
    rows = answers.select("item", "relation", "template", "leading", "leaders").join(
        items, on="item"
    )
    hits, expected = np.zeros(PERMUTATIONS), 0.0
    groups = rows.sort("relation", "set", "template", "item").group_by(
        "relation", "set", "template", maintain_order=True
    )
    for (relation, options, template), own in groups:
        size = 1 + int(pl.concat([own["answers"], own["leading"]]).explode().to_numpy().max())
        answered = _indicator(own["leading"], size) / own["leaders"].to_numpy()[:, None]
        seed = hash_key(asked.seed, "permuted", str(relation), str(options), str(template))
        drawn, mean = permuted(answered, _indicator(own["answers"], size), seed)
        hits, expected = hits + drawn, expected + mean
    of = of.but(n=answers["item"].n_unique())
    shares = 100 * hits / rows.height
    bounds = Interval(*percentile(shares), "permutations")
    yield of.but(metric="permuted golds", value=float(shares.mean()), interval=bounds)
    yield of.but(metric="permuted golds, expected", value=100 * expected / rows.height)


def _indicator(chosen: pl.Series, size: int) -> NDArray[np.float64]:
    """rows x options: 1 where an option is in the row's list."""
    made = np.zeros((len(chosen), size))
    lengths = chosen.list.len().to_numpy()
    made[np.repeat(np.arange(len(chosen)), lengths), chosen.explode().to_numpy()] = 1.0
    return made
