"""BEAR's numbers: from judged answers to RESULTS.

Accuracies are in per cent, every item weighing the same, mean over templates; `weighting` relations
weighs every relation the same. Source: Wiland et al. 2024; docs/papers/bear.md, Metrics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe import schema
from kgprobe.knowledge.facts import fact_id
from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.intervals import Interval, standard_error, wilson
from kgprobe.metrics.ranking import auc, reciprocal_rank
from kgprobe.tables import aggregations, confidence, slices, wordings
from kgprobe.tables.answers import Probe, judge, questions, without_subject
from kgprobe.tables.bear.published import LEADERBOARD_SOURCE, Published
from kgprobe.tables.judged import frame as judged_frame
from kgprobe.tables.judged import of_scores
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, as_published, family, hit_rate
from kgprobe.tables.results import frame as results_frame
from kgprobe.tables.study import SUBJECT, WEIGHTS, Asked, Baseline, Study, relations_of
from kgprobe.templates import ANSWER, answer_is_last, parse

Weights = NDArray[np.float64]


def studies(
    answered: Sequence[Probe],
    scores: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    seed: int = 0,
    content_free: Sequence[str | Path] | None = (),
    random_init: Mapping[Asked, str | Path] = MappingProxyType({}),
) -> list[Study]:
    """A Study per benchmark and prompt, in the order of the probes, scored by every aggregation;
    `content_free`: CONTENT_FREE of each probe where they were asked, None to read the sum alone.

    `folders`: benchmark -> folder with items, candidates and prompts (and, where there is one,
    relations) as parquet. `random_init`: SCORES of the models with random weights, by the probe
    that they stand below. Every SCORES file is judged and let go before the next is read.
    """
    every = []
    for benchmark, prompt in dict.fromkeys((probe.benchmark, probe.prompt) for probe in answered):
        folder = Path(folders[benchmark])
        items, candidates, prompts = questions(folder)
        task = aggregations.Questions(items, candidates, prompts, seed)
        judged: list[tuple[Probe, pl.DataFrame]] = []
        read, baselines = [], []
        for at, (probe, path) in enumerate(zip(answered, scores, strict=True)):
            if (probe.benchmark, probe.prompt) != (benchmark, prompt):
                continue
            frame = schema.read(path, schema.SCORES)
            base = judge(frame, items, candidates, where=str(path))
            judged.append((probe, base))
            if content_free is not None:
                beside = (
                    schema.read(content_free[at], schema.CONTENT_FREE) if content_free else None
                )
                read.append(aggregations.readings(base, frame, task, beside))
                lower = {} if beside is None else {SUBJECT: without_subject(items, beside)}
                if low := random_init.get(tuple(probe.dimensions.values())):
                    lower[WEIGHTS] = schema.read(low, schema.SCORES)
                for without, rows in lower.items():
                    part = items.join(rows, on="item", how="semi")
                    where = f"{path}, without {without}"
                    if part.height:
                        answers = judge(rows, part, candidates, where=where)
                        baselines.append(Baseline(len(judged) - 1, without, answers))
        relations = relations_of(folder / "relations.parquet")
        study = Study(benchmark, items, candidates, prompts, judged, relations, seed)
        every.append(replace(study, readings=read, baselines=baselines))
    return every


def judged_answers(studies: Sequence[Study]) -> pl.DataFrame:
    """The JUDGED frame of what the probes of some studies answered."""
    return judged_frame(
        "bear",
        (
            (probe, of_scores(answers, study.items, study.candidates))
            for study in studies
            for probe, answers in study.probes
        ),
    )


def numbers(
    studies: Sequence[Study], published: Published | None = None, facts: pl.DataFrame | None = None
) -> list[Number]:
    """Every number of BEAR. `facts`: frame TRAINED_ON, where control models were asked.

    accuracy (settings: template, weighting, mode "first wins": the lowest index among tied leaders,
    where a tie occurred; instead: minus that of another probe, paired), also by group (relation)
    and slice (cardinality, "domain: ...", where the answer stands in the template); SEM over
    templates, agreement (same option under all templates), correct in any, most (more than half)
    and all of them, the best template (setting `choice` oracle: chosen on what it is judged by),
    MRR, options, parameters, "accuracy minus published"; calibration; accuracies under other
    aggregations, see aggregations.py; what probabilities are worth, see confidence.py. A relation
    counts fully in each of its domains; weighting "split" divides its weight by their number.
    """
    results: list[Number] = []
    for study in studies:
        for position in range(len(study.probes)):
            results += _scores(study, position, published)
            results += _by_template(study, position)
        results += [*_by_group(study), *_by_position(study), *_ranks(study), *differences(study)]
        results += _baselines(study, published)
        known = find_splits(study, facts) if facts is not None else None
        results += _calibration(study, *known) if known else []
        results += slices.numbers(study, known)
        task = aggregations.Questions(
            study.items, study.candidates, study.prompts, study.seed, study.resamples
        )
        probes = [probe for probe, _ in study.probes]
        answered = list(zip(probes, study.readings, strict=False))
        results += aggregations.numbers(task, answered, known)
        results += confidence.numbers(task, answered)
    sizes = {p.model: p.parameters for study in studies for p, _ in study.probes if p.parameters}
    results += [Number(metric="parameters", model=m, value=size) for m, size in sizes.items()]
    return results + (list(_published(published)) if published else [])


def _accuracy(study: Study, position: int, weights: Weights | None = None) -> Number:
    """A probe's accuracy, `weights` per relation; n counts the items that have a weight."""
    boot = study.resampled
    return Number(
        metric="accuracy",
        value=100 * boot.mean(position, weights),
        interval=study.interval(position, weights),
        n=study.items.height if weights is None else int((weights > 0) @ boot.sizes),
        **study.probes[position][0].dimensions,
    )


def _scores(study: Study, position: int, published: Published | None) -> Iterator[Number]:
    """Of all items: accuracy beside the published one, SEM, means over relations, ties."""
    (probe, answers), boot = study.probes[position], study.resampled
    plain, even = _accuracy(study, position), _accuracy(study, position, boot.macro())
    paper = published.score(probe, plain.n, study.templates) if published else None
    yield plain.but(**as_published(*paper)) if paper else plain
    if paper and plain.value is not None and plain.interval:
        gap, bounds = plain.value - paper[0], plain.interval.minus(paper[0])
        yield plain.but(metric="accuracy minus published", value=gap, interval=bounds)
    if len(study.templates) > 1:
        error = standard_error((100 * study.hits(position).mean(axis=0)).tolist())
        yield plain.but(metric="SEM", value=error, interval=None)
    yield even.but(setting={"weighting": "relations"})
    over = bootstrap(boot.sums[:, position] / boot.sizes, seed=study.seed).interval().times(100)
    yield even.but(interval=over, setting={"weighting": "relations resampled"})
    if (answers["leaders"] > 1).any():
        first = 100 * study.hits(position, "first").mean()
        yield plain.but(value=first, interval=None, setting={"mode": "first wins"})


def _by_template(study: Study, position: int) -> Iterator[Number]:
    """Accuracy by template, of all items and by relation; what all templates agree on."""
    hits, owner = study.hits(position), study.ordered["relation"].to_numpy()
    base = _accuracy(study, position)
    several = len(study.templates) > 1
    for relation in ["", *(study.resampled.strata if several else [])]:
        inside = hits[owner == relation] if relation else hits
        for column, index in enumerate(study.templates):
            rate = hit_rate(inside[:, column])
            yield base.but(group=relation, setting={"template": index}, **rate)
    answers = study.probes[position][1].select("item", "template", "hit", said="winner")
    yield from wordings.numbers(base, answers)


def _by_group(study: Study) -> Iterator[Number]:
    """Accuracy by relation."""
    for name in study.resampled.strata:
        for position in range(len(study.probes)):
            yield _accuracy(study, position, study.among(name)).but(group=name)


def answer_position(template: str) -> str:
    """Where [Y] stands: last (but for punctuation), before the subject, or elsewhere.

    >>> answer_position("[X] was born in [Y].")
    'answer last'
    """
    if answer_is_last(template):
        return "answer last"
    before = parse(template).slots[0] == ANSWER
    return "answer before subject" if before else "answer elsewhere"


def _by_position(study: Study) -> Iterator[Number]:
    """Accuracy over all (item, template) pairs whose template has the answer at one position."""
    labels = _positions(study)
    for name in sorted(set(labels.ravel().tolist())):
        chosen = labels == name
        right = [(study.hits(i) * chosen).sum(axis=1) for i in range(len(study.probes))]
        boot = study.resample(np.column_stack([*right, chosen.sum(axis=1)]))
        n = int(chosen.any(axis=1).sum())
        for position, (probe, _) in enumerate(study.probes):
            value, bounds = boot.ratio(position, len(right))
            interval = (bounds or Interval(*wilson(min(value, 1.0) * n, n), "wilson")).times(100)
            number = Number(metric="accuracy", slice=name, **probe.dimensions)
            yield number.but(value=100 * value, interval=interval, n=n)


def _positions(study: Study) -> NDArray[np.str_]:
    """items x templates: the answer's position in the template of the item's relation."""
    texts = study.prompts.select("relation", "index", "text").iter_rows()
    positions = {(relation, index): answer_position(text) for relation, index, text in texts}
    owners = study.ordered["relation"].to_list()
    for relation in owners:
        for index in study.templates:
            if (relation, index) not in positions:
                raise ValueError(f"{study.benchmark}: {relation} has no template {index}")
    return np.array([[positions[relation, t] for t in study.templates] for relation in owners])


def _ranks(study: Study) -> Iterator[Number]:
    """Mean reciprocal rank of the correct option (0 to 1), expected under ties."""
    columns = []
    for position in range(len(study.probes)):
        best = study.hits(position, "above").astype(np.int64) + 1
        worst = best + study.hits(position, "tied").astype(np.int64)
        ranks = reciprocal_rank(best.ravel(), worst.ravel()).reshape(best.shape)
        columns.append(ranks.mean(axis=1))
    boot, n = study.resample(np.column_stack(columns)), study.items.height
    for position, (probe, _) in enumerate(study.probes):
        value, interval = boot.mean(position), boot.interval(position)
        yield Number(metric="MRR", value=value, n=n, interval=interval, **probe.dimensions)


def differences(study: Study) -> Iterator[Number]:
    """Accuracy of one probe minus that of another, paired: each and the best of the benchmark, as
    one family of tests."""
    boot, tested = study.resampled, []
    rates = [study.hits(position).mean(axis=1) for position in range(len(study.probes))]
    for i, j in study.with_best:
        one, other = study.probes[i][0], study.probes[j][0]
        of = Number(
            setting={"instead": study.instead(one, other)}, n=study.items.height, **one.dimensions
        )
        for weighting, weights in (({}, None), ({"weighting": "relations"}, boot.macro())):
            value, interval = boot.difference(i, j, weights)
            gap = of.but(metric="accuracy", setting={**of.setting, **weighting})
            yield gap.but(value=100 * value, interval=interval and interval.times(100))
        tested.append((of, rates[i] - rates[j]))
    yield from family(tested)


def compare(study: Study) -> pl.DataFrame:
    """model, instead, difference (points of per cent), low, high, p, n of a study's two probes."""
    rows = results_frame("bear", differences(study)).filter(weighting="")
    p = pl.lit(rows.filter(metric="p after Holm")["value"].item(), dtype=pl.Float64)
    accuracies = rows.filter(metric="accuracy").rename({"value": "difference"})
    return accuracies.select("model", "instead", "difference", "low", "high", p.alias("p"), "n")


def _baselines(study: Study, published: Published | None) -> Iterator[Number]:
    """Random and majority, exact on the set (no interval), and the number of options."""
    chance, n = study.totals(study.random, study.majority, study.options), study.items.height
    paper = published.baseline(study.benchmark, n) if published else None
    base = Number(metric="accuracy", benchmark=study.benchmark, n=n)
    for column, model in enumerate(("random", "majority")):
        known = as_published(paper if model == "random" else None, LEADERBOARD_SOURCE)
        yield base.but(model=model, value=100 * chance.mean(column), **known)
        for name, size in zip(chance.strata, chance.sizes, strict=True):
            value = 100 * chance.mean(column, study.among(name))
            yield base.but(model=model, value=value, n=int(size), group=name)
        even = 100 * chance.mean(column, chance.macro())
        yield base.but(model=model, value=even, setting={"weighting": "relations"})
    for name, size in zip(chance.strata, chance.sizes, strict=True):
        value = chance.mean(2, study.among(name))
        yield base.but(metric="options", group=name, value=value, n=int(size))


def _published(published: Published) -> Iterator[Number]:
    """The leaderboard's models; `slice` is their kind, the interval one standard error over
    templates to either side. Correlations of accuracy with log10(parameters) over the models that
    the paper lists; n: models."""
    rows = published.models()
    for row in rows.iter_rows(named=True):
        of = Number(model=row["model"], method="published", slice=row["kind"])
        score, error = row["score"], row["sem"]
        bounds = Interval(score - error, score + error, "standard error")
        number = of.but(metric="accuracy", benchmark="bear_released", value=score, interval=bounds)
        yield number.but(**as_published(score, LEADERBOARD_SOURCE))
        yield of.but(metric="parameters", value=row["parameters"])
    for kind in ("", "causal", "masked"):
        group = rows.filter(pl.col("kind").is_in([kind] if kind else ["causal", "masked"]))
        group = group.filter(listed="paper")
        pair = group.select("score", size=pl.col("parameters").log10())
        if group.height < 3:
            continue
        for method in ("pearson", "spearman"):
            value = pair.select(pl.corr("score", "size", method=method)).item()
            yield Number(metric=method, method="published", slice=kind, value=value, n=group.height)


def status(study: Study, facts: pl.DataFrame) -> pl.DataFrame:
    """item, trained_on (whether it is a training fact of `facts`); without items whose fact is in
    neither half (lifted answers) or that have several answers."""
    options = study.candidates.select(candidates="set", answer="index", object="id")
    return (
        study.items.filter(pl.col("answers").list.len() == 1)
        .select(
            "item",
            "relation",
            "subject_id",
            "candidates",
            answer=pl.col("answers").list.first(),
        )
        .join(options, on=["candidates", "answer"])
        .with_columns(fact=fact_id(subject="subject_id"))
        .join(facts.select("fact", "trained_on"), on="fact")
        .select("item", "trained_on")
        .sort("item")
    )


def find_splits(
    study: Study, facts: pl.DataFrame
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Which of the ordered items are trained on and which held out; None unless both occur."""
    known = status(study, facts)
    if not (known["trained_on"].any() and not known["trained_on"].all()):
        return None
    ordered = study.ordered["item"]
    both = [
        ordered.is_in(known.filter(trained_on=half)["item"].implode()) for half in (True, False)
    ]
    return both[0].to_numpy(), both[1].to_numpy()


def _calibration(study: Study, yes: NDArray[np.bool_], no: NDArray[np.bool_]) -> Iterator[Number]:
    """Validity on a benchmark with trained-on and held-out facts. AUC (0 to 1): probability that a
    trained-on item has a larger margin than a held-out one (score of the correct option minus that
    of the best wrong one, in nats, mean over templates)."""
    chance = 100 * float(study.random[no].mean())
    for position, (probe, _) in enumerate(study.probes):
        hits = study.hits(position).mean(axis=1)
        margin = study.hits(position, "margin").mean(axis=1)
        yield from validity.numbers(
            Number(**probe.dimensions),
            _half(study, hits, yes),
            _half(study, hits, no),
            chance,
            auc(margin[yes], margin[no]),
            probe.control,
        )


def _half(
    study: Study, hits: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> validity.Proportion:
    """Accuracy of the chosen items, n and interval, chosen as in `Study.interval`."""
    inside = hits[chosen]
    value, n, interval = validity.proportion(inside)
    if len(study.templates) > 1:
        owners = study.ordered["relation"].filter(pl.Series(chosen)).to_list()
        boot = bootstrap(inside, owners, seed=study.seed, draws=study.resamples)
        interval = boot.interval().times(100)
    return value, n, interval
