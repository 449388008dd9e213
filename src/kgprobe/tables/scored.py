"""Numbers from stored scores of options, whatever the benchmark: SCORES are read once for all.

Accuracy under every aggregation, what the probabilities are worth, and slices of the accuracy under
a probe's own aggregation. Of slices those are made that have more than one bin. Domains,
cardinalities and sitelinks are left out: outside BEAR no benchmark knows them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kgprobe import schema
from kgprobe.contracts import WITHOUT
from kgprobe.tables import aggregations, baselines, confidence, slices
from kgprobe.tables.answers import Probe, choosable, judge, judge_scores, without_subject
from kgprobe.tables.results import Number
from kgprobe.tables.study import BaselineAnswers, Study

SUBJECT, WEIGHTS = WITHOUT
#: what stands in a slice for all probes alike
CHANCE = ("random", "majority")
#: the slices that any benchmark has
SLICES = tuple(one for one in slices.SLICES if one.name in slices.EVERYWHERE)


@dataclass(frozen=True)
class Scored:
    """SCORES of one probe, with all templates of each relation that it was asked.

    `content_free`: CONTENT_FREE of the probe; `random_init`: SCORES of the model with random
    weights, which may be of a part; `where`: what errors name.
    """

    probe: Probe
    scores: pl.DataFrame
    study: Study
    content_free: pl.DataFrame | None = None
    where: str = "scores"
    random_init: pl.DataFrame | None = None

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


def read_random_init(below: baselines.Files, probe: Probe) -> pl.DataFrame | None:
    """SCORES of the model with random weights that stand below a probe's; None without any."""
    path = dict(baselines.below(below, probe)).get(WEIGHTS)
    return schema.read(path, schema.SCORES) if path else None


def estimates(every: Iterable[Scored]) -> Iterator[Number]:
    """Every number of several probes' SCORES, each of which is let go before the next is read.

    Items without a wrong option are left out; "without wrong option" counts them.
    """
    alike: list[Study] = []
    seen: set[tuple[str, str]] = set()
    for one in every:
        items = choosable(one.study.items, one.study.candidates)
        of = Number(n=one.study.items.height, group=one.study.group, **one.probe.dimensions)
        if lost := one.study.items.height - items.height:
            yield of.but(metric="without wrong option", value=lost)
        if not items.height:
            continue
        scores = one.scores.join(items.select("item"), on="item", how="semi")
        task = replace(one.study, items=items, benchmark=one.probe.benchmark)
        one = replace(one, scores=scores, study=task)
        answers = judge(scores, items, task.candidates, task.aggregation, one.where, task.prompts)
        # what is counted of the questions stands once, whoever else is asked them
        if (task.benchmark, task.group) not in seen:
            yield from aggregations.count_coinciding(task)
        seen.add((task.benchmark, task.group))
        yield from numbers_of(one, answers)
        alike = _add(alike, one, answers)
    yield from _slice(alike)


def numbers_of(one: Scored, answers: pl.DataFrame) -> Iterator[Number]:
    """What SCORES say under every aggregation, and what their probabilities are worth; `answers`:
    the same, judged by the study's own aggregation."""
    judged = aggregations.readings(answers, one.scores, one.study, one.content_free)
    yield from aggregations.estimates(one.study, one.probe, judged)
    yield from confidence.estimates(one.study, one.probe, judged)


def with_probe(study: Study, one: Scored, answers: pl.DataFrame) -> Study:
    """The study with the judged answers of one probe more, and those below them."""
    below = [BaselineAnswers(len(study.probes), *pair) for pair in one.baselines.items()]
    probes = [*study.probes, (one.probe, answers)]
    return replace(study, probes=probes, baselines=[*study.baselines, *below])


def _add(alike: Sequence[Study], one: Scored, answers: pl.DataFrame) -> list[Study]:
    """Studies of what several probes were asked alike, with one probe more."""
    same = [s for s in alike if s.of == one.study.of and s.matches(answers)]
    study = same[0] if same else one.study
    more = with_probe(study, one, answers)
    return [more if s is study else s for s in alike] + [more] * (not same)


def _slice(studies: Sequence[Study]) -> Iterator[Number]:
    """Slices; chance stands once in each."""
    seen: set[tuple[str, str]] = set()
    for study in studies:
        part = study.benchmark, study.group
        several = [kind for kind, inside in slices.bins_of(study, SLICES) if len(inside) > 1]
        for number in slices.slice_numbers(study, several):
            if number.model not in CHANCE or part not in seen:
                yield number
        seen.add(part)
