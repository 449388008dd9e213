"""Numbers from stored scores of options, whatever the benchmark: SCORES are read once for all.

Accuracy under every aggregation, what the probabilities are worth, and slices of the accuracy under
a probe's own aggregation. Of slices those are made that have more than one bin. Domains,
cardinalities and sitelinks are left out: outside BEAR no benchmark knows them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import polars as pl

from kgprobe.contracts import WITHOUT
from kgprobe.tables import aggregations, confidence, slices
from kgprobe.tables.aggregations import Bools
from kgprobe.tables.answers import Probe, choosable, judge, judge_scores, without_subject
from kgprobe.tables.results import Number
from kgprobe.tables.study import Baseline, Study

SUBJECT, WEIGHTS = WITHOUT
#: what stands in a slice for all probes alike
CHANCE = ("random", "majority")
#: the slices that any benchmark has
SLICES = tuple(one for one in slices.SLICES if one.name in slices.EVERYWHERE)


@dataclass(frozen=True)
class Scored:
    """SCORES of one probe, with all templates of each relation that it was asked.

    `trained_on`: item -> whether control models were trained on it, where known; `content_free`:
    CONTENT_FREE of the probe; `random_init`: SCORES of the model with random weights, which may be
    of a part; `where`: what errors name.
    """

    probe: Probe
    scores: pl.DataFrame
    study: Study
    trained_on: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    content_free: pl.DataFrame | None = None
    where: str = "scores"
    random_init: pl.DataFrame | None = None

    @property
    def splits(self) -> tuple[Bools, Bools] | None:
        """Which items, in the order of ids, are trained on, and held out; None without either."""
        trained_on = [self.trained_on.get(item) for item in self.study.items["item"].sort()]
        yes, no = (np.array([status is half for status in trained_on]) for half in (True, False))
        return (yes, no) if yes.any() and no.any() else None

    @property
    def baselines(self) -> dict[str, pl.DataFrame]:
        """The answers below this probe's, judged by its own aggregation: without -> answers."""
        scores = {WEIGHTS: self.random_init} if self.random_init is not None else {}
        if self.content_free is not None:
            scores = {SUBJECT: without_subject(self.study.items, self.content_free), **scores}
        judged = {}
        for without, rows in scores.items():
            part = self.study.items.join(rows, on="item", how="semi")
            if part.height:
                rows = rows.join(part.select("item"), on="item", how="semi")
                where = f"{self.where}, without {without}"
                judged[without] = judge_scores(rows, part, self.study.aggregation or "sum", where)
        return judged


def numbers(every: Iterable[Scored]) -> Iterator[Number]:
    """Every number of several probes' SCORES, each of which is let go before the next is read.

    Items without a wrong option are left out; "without wrong option" counts them.
    """
    kept: list[tuple[Scored, pl.DataFrame, dict[str, pl.DataFrame]]] = []
    seen: set[tuple[str, str]] = set()
    for one in every:
        items = choosable(one.study.items, one.study.candidates)
        of = Number(n=one.study.items.height, group=one.study.group, **one.probe.dimensions)
        if lost := one.study.items.height - items.height:
            yield of.but(metric="without wrong option", value=lost)
        if not items.height:
            continue
        scores = one.scores.join(items.select("item"), on="item", how="semi")
        one = replace(one, scores=scores, study=replace(one.study, items=items))
        task = one.study
        answers = judge(scores, items, task.candidates, task.aggregation, one.where, task.prompts)
        read = [(one.probe, aggregations.readings(answers, scores, task, one.content_free))]
        for number in aggregations.numbers(task, read, one.splits):
            # what is counted of the questions stands once, whoever else is asked them
            if number.model or (number.benchmark, number.group) not in seen:
                yield number
        seen.add((one.probe.benchmark, task.group))
        yield from confidence.numbers(task, read)
        rest = replace(one, scores=scores.clear(), content_free=None, random_init=None)
        kept.append((rest, answers, one.baselines))
    yield from _slice(kept)


def _slice(
    kept: Iterable[tuple[Scored, pl.DataFrame, dict[str, pl.DataFrame]]],
) -> Iterator[Number]:
    """Slices of what several probes were asked alike; chance stands once in each."""
    alike: list[tuple[Study, Scored]] = []
    for one, answers, below in kept:
        task = replace(one.study, benchmark=one.probe.benchmark)
        same = [at for at, (study, _) in enumerate(alike)
                if study.of == task.of and study.is_asked_as(answers)]  # fmt: skip
        if not same:
            same = [len(alike)]
            alike.append((task, one))
        study, first = alike[same[0]]
        baselines = [Baseline(len(study.probes), *pair) for pair in below.items()]
        probes = [*study.probes, (one.probe, answers)]
        both = replace(study, probes=probes, baselines=[*study.baselines, *baselines])
        alike[same[0]] = both, first
    seen: set[tuple[str, str]] = set()
    for study, one in alike:
        part = study.benchmark, study.group
        bins = slices.bins_of(study, one.splits, SLICES)
        several = [kind for kind, inside in bins if len(inside) > 1]
        for number in slices.slice_numbers(study, one.splits, several):
            if number.model not in CHANCE or part not in seen:
                yield number
        seen.add(part)
