"""Numbers from stored scores of options, for any benchmark: SCORES are read once for all of them.

Accuracy under every aggregation, quality of the probabilities, and slices of the accuracy under a
probe's own aggregation, if they have more than one bin. Domains, cardinalities and sitelinks are
left out: only BEAR has them.
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
#: models in a slice that are the same for all probes
CHANCE = ("random", "majority")
#: the slices that any benchmark has
SLICES = tuple(one for one in slices.SLICES if one.name in slices.EVERYWHERE)


@dataclass(frozen=True)
class Scored:
    """SCORES of one probe, with all templates of each relation that it was asked.

    `content_free`: CONTENT_FREE of the probe; `random_init`: SCORES of the model with random
    weights, possibly of a subset; `where`: name used in error messages.
    """

    probe: Probe
    scores: pl.DataFrame
    study: Study
    content_free: pl.DataFrame | None = None
    where: str = "scores"
    random_init: pl.DataFrame | None = None

    @property
    def baselines(self) -> dict[str, pl.DataFrame]:
        """The baselines' answers, judged by this probe's own aggregation: without -> answers."""
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
    """Read the SCORES with random weights that are a probe's baseline; None without any."""
    path = dict(baselines.below(below, probe)).get(WEIGHTS)
    return schema.read(path, schema.SCORES) if path else None


def estimates(every: Iterable[Scored]) -> Iterator[Number]:
    """Yield every number of several probes' SCORES, each released before the next is read.

    Items without a wrong option are left out; "without wrong option" counts them.
    """
    alike: list[Study] = []
    seen: set[tuple[str, str]] = set()
    for one in every:
        items = choosable(one.study.items, one.study.candidates)
        n = one.study.count(one.study.items["item"])
        of = Number(n=n, group=one.study.group, **one.probe.dimensions)
        if lost := one.study.items.height - items.height:
            yield of.but(metric="without wrong option", value=lost)
        if not items.height:
            continue
        scores = one.scores.join(items.select("item"), on="item", how="semi")
        task = replace(one.study, items=items, benchmark=one.probe.benchmark)
        one = replace(one, scores=scores, study=task)
        answers = judge(scores, items, task.candidates, task.aggregation, one.where, task.prompts)
        # counts of the questions are given once, regardless of the number of probes
        if (task.benchmark, task.group) not in seen:
            yield from aggregations.count_coinciding(task)
        seen.add((task.benchmark, task.group))
        yield from numbers_of(one, answers)
        # one more probe of the study of those that were asked the same, or of a new study
        matching = [i for i, s in enumerate(alike) if s.of == task.of and s.matches(answers)]
        if matching:
            alike[matching[0]] = with_probe(alike[matching[0]], one, answers)
        else:
            alike.append(with_probe(task, one, answers))
    yield from _slice(alike)


def numbers_of(one: Scored, answers: pl.DataFrame) -> Iterator[Number]:
    """Yield the numbers of SCORES under every aggregation, and the quality of their probabilities;
    `answers`: the same, judged by the study's own aggregation."""
    judged = aggregations.readings(answers, one.scores, one.study, one.content_free)
    yield from aggregations.estimates(one.study, one.probe, judged)
    yield from confidence.estimates(one.study, one.probe, judged)


def with_probe(study: Study, one: Scored, answers: pl.DataFrame) -> Study:
    """Add the judged answers of one more probe, and of its baselines, to the study."""
    below = [BaselineAnswers(len(study.probes), *pair) for pair in one.baselines.items()]
    probes = [*study.probes, (one.probe, answers)]
    return replace(study, probes=probes, baselines=[*study.baselines, *below])


def _slice(studies: Sequence[Study]) -> Iterator[Number]:
    """Yield the slices, with chance only once in each of their bins: if probes were asked different
    items, that of the first study with such items."""
    seen: set[tuple[str, str, str, str]] = set()
    for study in studies:
        several = [kind for kind, inside in slices.bins_of(study, SLICES) if len(inside) > 1]
        for number in slices.slice_numbers(study, several):
            key = (number.benchmark, number.group, number.model, number.slice)
            if number.model not in CHANCE or key not in seen:
                yield number
            seen.add(key)
