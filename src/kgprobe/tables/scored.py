"""What stored scores of options say, whatever the benchmark: one reading for all numbers.

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
from kgprobe.tables.aggregations import Bools, Questions
from kgprobe.tables.answers import Probe, choosable, judge, judge_scores, without_subject
from kgprobe.tables.results import Number
from kgprobe.tables.study import Baseline, Study

SUBJECT, WEIGHTS = WITHOUT
#: what stands in a slice for all probes alike
CHANCE = ("random", "majority")
#: what items are told apart by
SLICES = tuple(one for one in slices.SLICES if one.name in slices.EVERYWHERE)


@dataclass(frozen=True)
class Scored:
    """SCORES of one probe, with all templates of each relation that it was asked.

    `taught`: item -> whether control models were taught it, where that is known; `content_free`:
    CONTENT_FREE of the probe; `baselines`: SCORES of the model with random weights, which may be of
    a part; `where`: what errors name.
    """

    probe: Probe
    scores: pl.DataFrame
    asked: Questions
    taught: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    content_free: pl.DataFrame | None = None
    where: str = "scores"
    random_init: pl.DataFrame | None = None

    @property
    def halves(self) -> tuple[Bools, Bools] | None:
        """Which items, in the order of ids, are taught, untaught; None unless some are either."""
        fates = [self.taught.get(item) for item in self.asked.items["item"].sort()]
        yes, no = (np.array([fate is half for fate in fates]) for half in (True, False))
        return (yes, no) if yes.any() and no.any() else None

    @property
    def baselines(self) -> dict[str, pl.DataFrame]:
        """The answers below this probe's, judged by its own aggregation: without -> answers."""
        told = {WEIGHTS: self.random_init} if self.random_init is not None else {}
        if self.content_free is not None:
            told = {SUBJECT: without_subject(self.asked.items, self.content_free), **told}
        found = {}
        for without, rows in told.items():
            part = self.asked.items.join(rows, on="item", how="semi")
            if part.height:
                rows = rows.join(part.select("item"), on="item", how="semi")
                where = f"{self.where}, without {without}"
                found[without] = judge_scores(rows, part, self.asked.own or "sum", where)
        return found


def numbers(every: Iterable[Scored]) -> Iterator[Number]:
    """Every number of several probes' SCORES, each of which is let go before the next is read.

    Items without a wrong option are left out; "without wrong option" counts them.
    """
    kept: list[tuple[Scored, pl.DataFrame, dict[str, pl.DataFrame]]] = []
    told: set[tuple[str, str]] = set()
    for one in every:
        items = choosable(one.asked.items, one.asked.candidates)
        of = Number(n=one.asked.items.height, group=one.asked.group, **one.probe.asked)
        if lost := one.asked.items.height - items.height:
            yield of.but(metric="without wrong option", value=lost)
        if not items.height:
            continue
        scores = one.scores.join(items.select("item"), on="item", how="semi")
        one = replace(one, scores=scores, asked=replace(one.asked, items=items))
        asked = one.asked
        own = judge(scores, items, asked.candidates, asked.own, one.where, asked.prompts)
        read = [(one.probe, aggregations.readings(own, scores, asked, one.content_free))]
        for number in aggregations.numbers(asked, read, one.halves):
            # what is counted of the questions stands once, whoever else is asked them
            if number.model or (number.benchmark, number.group) not in told:
                yield number
        told.add((one.probe.benchmark, asked.group))
        yield from confidence.numbers(asked, read)
        rest = replace(one, scores=scores.clear(), content_free=None, random_init=None)
        kept.append((rest, own, one.baselines))
    yield from _slice(kept)


def _slice(
    kept: Iterable[tuple[Scored, pl.DataFrame, dict[str, pl.DataFrame]]],
) -> Iterator[Number]:
    """Slices of what several probes were asked alike; chance stands once in each."""
    alike: list[tuple[Study, Scored]] = []
    for one, own, below in kept:
        asked, probe = one.asked, one.probe
        rows = own.select("item", "template")
        for place, (study, first) in enumerate(alike):
            same = (study.benchmark, study.group) == (probe.benchmark, asked.group)
            if same and rows.equals(study.probes[0][1].select("item", "template")):
                baselines = [
                    Baseline(len(study.probes), name, told) for name, told in below.items()
                ]
                probes = [*study.probes, (probe, own)]
                both = replace(study, probes=probes, baselines=[*study.baselines, *baselines])
                alike[place] = both, first
                break
        else:
            study = Study(
                probe.benchmark, asked.items, asked.candidates, asked.prompts, [(probe, own)],
                seed=asked.seed, resamples=asked.resamples, aggregation=asked.own,
                group=asked.group,
                baselines=[Baseline(0, name, told) for name, told in below.items()],
            )  # fmt: skip
            alike.append((study, one))
    seen: set[tuple[str, str]] = set()
    for study, one in alike:
        part = study.benchmark, study.group
        bins = slices.bins_of(study, one.halves, SLICES)
        several = [found for found, own in bins if len(own) > 1]
        for number in slices.slice_numbers(study, one.halves, several):
            if number.model not in CHANCE or part not in seen:
                yield number
        seen.add(part)
