"""BEAR's numbers: from judged answers to RESULTS.

Accuracies are in per cent, every item weighing the same, mean over templates; `weighting` relations
gives every relation the same weight. Source: Wiland et al. 2024; docs/papers/bear.md, Metrics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import polars as pl

from kgprobe import schema
from kgprobe.knowledge.facts import fact_id
from kgprobe.metrics.intervals import Interval, standard_error
from kgprobe.metrics.ranking import auc, reciprocal_rank
from kgprobe.metrics.sums import ordered_mean, ordered_sum
from kgprobe.tables import aggregations, baselines, consistency, slices
from kgprobe.tables.answers import OPTION, Probe, judge, questions
from kgprobe.tables.bear.published import LEADERBOARD_SOURCE, Published
from kgprobe.tables.estimate import estimate
from kgprobe.tables.judged import frame as judged_frame
from kgprobe.tables.judged import of_scores
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, as_published
from kgprobe.tables.results import frame as results_frame
from kgprobe.tables.scored import Scored, numbers_of, read_random_init, with_probe
from kgprobe.tables.study import Study, by_item, relations_of
from kgprobe.templates import ANSWER, answer_is_last, parse

#: preferences of a model that are not knowledge
PREDICTED, RANK = "most frequent prediction", "rank of options"
#: numbers of tokens of an option
LENGTHS = ("1 token", "2 tokens", "3 tokens", "4 tokens", "5 tokens or more")


def studies(
    answered: Sequence[Probe],
    scores: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    seed: int = 0,
    content_free: Sequence[str | Path] = (),
    below: baselines.Files = MappingProxyType({}),
    facts: pl.DataFrame | None = None,
) -> list[Study]:
    """Build a Study per benchmark and prompt, in the order of the probes, with its numbers of every
    aggregation; `content_free`: CONTENT_FREE of each probe, if asked; `facts`: frame TRAINED_ON, if
    control models were asked.

    `folders`: benchmark -> folder with items, candidates and prompts (and, if available, relations)
    as parquet. `below`: SCORES of the models with random weights. Every SCORES file is judged and
    released before the next is read.
    """
    every = []
    for benchmark, prompt in dict.fromkeys((probe.benchmark, probe.prompt) for probe in answered):
        folder = Path(folders[benchmark])
        relations = relations_of(folder / "relations.parquet")
        task = Study(*questions(folder), seed, benchmark=benchmark, relations=relations)
        if facts is not None:
            task = replace(task, trained_on=dict(status(task, facts).rows()))
        study, known = task, [*aggregations.count_coinciding(task)]
        for at, (probe, path) in enumerate(zip(answered, scores, strict=True)):
            if (probe.benchmark, probe.prompt) != (benchmark, prompt):
                continue
            free = schema.read(content_free[at], schema.CONTENT_FREE) if content_free else None
            low = read_random_init(below, probe)
            one = Scored(probe, schema.read(path, schema.SCORES), task, free, str(path), low)
            answers = judge(one.scores, task.items, task.candidates, where=one.where)
            known += [*numbers_of(one, answers), *preferences(one, answers)]
            study = with_probe(study, one, answers)
        every.append(replace(study, numbers=known))
    return every


def preferences(one: Scored, answers: pl.DataFrame) -> Iterator[Number]:
    """Yield two preferences that are not knowledge.

    PREDICTED: proportion of items whose prediction is the most frequent one of their relation, mean
    over templates; ties share it. RANK: mean rank of the options by their number of scored tokens
    (`slice`), from 0 (always first) to 100 (always last); n: items that have such options.
    """
    of, items = Number(**one.probe.dimensions), one.study.items
    named = one.study.candidates.select("set", leading="index", option=OPTION)
    sets = items.select("item", set="candidates")
    wins = answers.join(sets, on="item").explode("leading").join(named, on=["set", "leading"])
    by = ["relation", "template"]
    counts = wins.group_by(*by, "option").agg(wins=ordered_sum(1 / pl.col("leaders")))
    most = counts.group_by(by).agg(pl.col("wins").max())
    of_relations = most.group_by("relation").agg(ordered_mean("wins"))
    value = 100 * of_relations.select(ordered_sum("wins")).item() / items.height
    yield of.but(metric=PREDICTED, value=value, n=one.study.count(items["item"]))
    question = ["item", "template"]
    below = pl.col("sum").rank("average", descending=True).over(question) - 1
    ranks = one.scores.select(
        "item",
        rank=below / (pl.len().over(question) - 1),
        tokens=pl.col("answer_count").clip(1, len(LENGTHS)),
    )
    means = ranks.group_by("item", "tokens").agg(ordered_mean("rank")).sort("item")
    means = means.join(items.select("item", "relation"), on="item", maintain_order="left")
    for tokens, name in enumerate(LENGTHS, 1):
        if (rows := means.filter(tokens=tokens)).height:
            yield of.but(metric=RANK, slice=name, **one.study.estimate(rows, "rank"))


def judged_answers(studies: Sequence[Study]) -> pl.DataFrame:
    """Build the JUDGED frame of the probes of some studies."""
    judged = (
        (probe, of_scores(answers, study.items, study.candidates))
        for study in studies
        for probe, answers in study.probes
    )
    return judged_frame("bear", judged)


def estimates(studies: Sequence[Study], published: Published | None = None) -> list[Number]:
    """Return every number of BEAR.

    accuracy (settings: template, weighting, mode "first wins": the lowest index among tied leaders,
    if a tie occurred; instead: minus that of another probe, paired), also by group (relation) and
    slice (cardinality, "domain: ...", position of the answer in the template); SEM over templates,
    agreement (same option under all templates), correct in any, most (more than half) and all of
    them, the best template (setting `choice` oracle: selected on the test items), MRR, preferences,
    options, parameters, "accuracy minus published"; calibration; accuracies under other
    aggregations, see aggregations.py; calibration of probabilities, see confidence.py. A relation
    counts fully in each of its domains; weighting "split" divides its weight by their number.
    """
    results: list[Number] = []
    for study in studies:
        for position in range(len(study.probes)):
            results += _scores(study, position, published)
            results += _by_template(study, position)
        results += [*_by_position(study), *differences(study), *_baselines(study, published)]
        results += _calibration(study)
        results += slices.estimates(study)
        results += study.numbers
    sizes = {p.model: p.parameters for study in studies for p, _ in study.probes if p.parameters}
    results += [Number(metric="parameters", model=m, value=size) for m, size in sizes.items()]
    return results + (list(_published(published)) if published else [])


def _scores(study: Study, position: int, published: Published | None) -> Iterator[Number]:
    """Yield for all items: accuracy with the published one, SEM, means over relations, ties, MRR;
    and accuracy for each relation."""
    (probe, answers), rows = study.probes[position], study.hits[position]
    is_proportion = len(study.templates) == 1
    of = Number(metric="accuracy", **probe.dimensions)
    plain = of.but(**study.estimate(rows, "hit", is_proportion=is_proportion))
    paper = published.score(probe, plain.n, study.templates) if published else None
    yield plain.but(**as_published(*paper)) if paper else plain
    if paper and plain.value is not None and plain.interval:
        gap, bounds = plain.value - paper[0], plain.interval.minus(paper[0])
        yield plain.but(metric="accuracy minus published", value=gap, interval=bounds)
    if not is_proportion:
        by_template = answers.group_by("template").agg(ordered_mean("hit")).sort("template")
        error = standard_error((100 * by_template["hit"]).to_list())
        yield plain.but(metric="SEM", value=error, interval=None)
    even = of.but(**study.estimate(rows, "hit", is_macro=True))
    yield even.but(setting={"weighting": "relations"})
    relations = rows.group_by("relation").agg(ordered_mean("hit")).sort("relation")
    over = estimate(relations, "hit", seed=study.seed)["interval"]
    yield even.but(interval=over, setting={"weighting": "relations resampled"})
    if (answers["leaders"] > 1).any():
        first = 100 * by_item(answers, "first").select(ordered_mean("first")).item()
        yield plain.but(value=first, interval=None, setting={"mode": "first wins"})
    places = pl.col("above", "tied", "level").cast(pl.Int64)
    above, tied, level = answers.select(places).to_numpy().T
    ranks = reciprocal_rank(above + 1, above + tied + level, golds=level)
    expected = by_item(answers.with_columns(rank=pl.Series(ranks)), "rank")
    yield of.but(metric="MRR", **study.estimate(expected, "rank", scale=1))
    for (name,), part in rows.group_by("relation", maintain_order=True):
        share = study.estimate(part, "hit", is_proportion=is_proportion)
        yield of.but(group=name, **share)


def _by_template(study: Study, position: int) -> Iterator[Number]:
    """Yield accuracy by template (all items, each relation), and agreement between templates."""
    probe, answers = study.probes[position]
    of = Number(metric="accuracy", **probe.dimensions)
    keys = [["template"], ["relation", "template"]] if len(study.templates) > 1 else [["template"]]
    for key in keys:
        for values, rows in answers.group_by(key, maintain_order=True):
            at = of.but(group=values[0] if values[1:] else "", setting={"template": values[-1]})
            yield at.but(**study.estimate(rows, "hit", is_proportion=True))
    rows = answers.select("item", "relation", "template", "hit", said="winner")
    yield from consistency.estimates(of, rows, mean=study.estimate)


def answer_position(template: str) -> str:
    """Return where [Y] is: last (except for punctuation), before the subject, or elsewhere.

    >>> answer_position("[X] was born in [Y].")
    'answer last'
    """
    if answer_is_last(template):
        return "answer last"
    before = parse(template).slots[0] == ANSWER
    return "answer before subject" if before else "answer elsewhere"


def _by_position(study: Study) -> Iterator[Number]:
    """Yield accuracy over the (item, template) pairs of each position of the answer."""
    texts = study.prompts.select("relation", "text", template="index")
    position = pl.col("text").map_elements(answer_position, return_dtype=pl.String)
    positions = texts.with_columns(position=position)
    for probe, answers in study.probes:
        key = ["relation", "template"]
        lacking = answers.join(positions, on=key, how="anti")
        if lacking.height:
            relation, template = lacking.select(key).row(0)
            raise ValueError(f"{study.benchmark}: {relation} has no template {template}")
        placed = answers.join(positions, on=key).sort("position")
        for (name,), part in placed.group_by("position", maintain_order=True):
            of = Number(metric="accuracy", slice=name, **probe.dimensions)
            rows = study.item_hits(part).with_columns(pl.col("templates").cast(pl.Float64))
            is_proportion = rows["templates"].max() == 1
            value = study.estimate(rows, "hit", weight="templates", is_proportion=is_proportion)
            yield of.but(**value)


def differences(study: Study) -> Iterator[Number]:
    """Yield the paired accuracy differences between each probe and the best of the benchmark, as
    one family of tests."""
    pairs = slices.with_best(study)
    for of, rows in pairs:
        gap = of.but(metric="accuracy", setting={"weighting": "relations"})
        yield gap.but(**study.estimate(rows, "hit", less="other", is_macro=True))
    yield from slices.differences(study, pairs, [slices.EVERY_ITEM])


def compare(study: Study) -> pl.DataFrame:
    """Return model, instead, difference (points), low, high, p, n of a study's two probes."""
    rows = results_frame("bear", differences(study)).filter(weighting="")
    p = pl.lit(rows.filter(metric="p after Holm")["value"].item(), dtype=pl.Float64)
    accuracies = rows.filter(metric="accuracy").rename({"value": "difference"})
    return accuracies.select("model", "instead", "difference", "low", "high", p.alias("p"), "n")


def _baselines(study: Study, published: Published | None) -> Iterator[Number]:
    """Yield random and majority accuracy, exact (no interval), and the number of options."""
    rows = study.ordered.select(
        "item", "relation", random=study.random, majority=study.majority, options=study.options
    )
    rows = rows.join(study.clusters, on="item", how="left", maintain_order="left")
    n = rows["cluster"].n_unique()
    paper = published.baseline(study.benchmark, rows.height) if published else None
    base = Number(metric="accuracy", benchmark=study.benchmark, n=n)
    names = ["random", "majority", "options"]
    relations = rows.group_by("relation").agg(ordered_mean(names), n=pl.col("cluster").n_unique())
    relations = relations.sort("relation")
    whole, even = (f.select(ordered_mean(names)).row(0, named=True) for f in (rows, relations))
    for model in names[:2]:
        known = as_published(paper if model == "random" else None, LEADERBOARD_SOURCE)
        yield base.but(model=model, value=100 * whole[model], **known)
        weighting = {"weighting": "relations"}
        yield base.but(model=model, value=100 * even[model], setting=weighting)
        for name, value, size in relations.select("relation", model, "n").rows():
            yield base.but(model=model, value=100 * value, n=size, group=name)
    for name, value, size in relations.select("relation", "options", "n").rows():
        yield base.but(metric="options", group=name, value=value, n=size)


def _published(published: Published) -> Iterator[Number]:
    """Yield the leaderboard's models; `slice` is their kind, the interval one standard error over
    templates to either side. Also the correlations of accuracy with log10(parameters) over the
    models listed in the paper; n: models."""
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
    """Return item, trained_on (whether it is a training fact of `facts`), without items that have
    several answers or whose fact is in neither split (answers mapped to ancestors)."""
    options = study.candidates.select(candidates="set", answer="index", object="id")
    items = study.items.filter(pl.col("answers").list.len() == 1)
    items = items.with_columns(answer=pl.col("answers").list.first())
    named = items.join(options, on=["candidates", "answer"])
    known = named.select("item", fact=fact_id(subject="subject_id")).join(facts, on="fact")
    return known.select("item", "trained_on").sort("item")


def _calibration(study: Study) -> Iterator[Number]:
    """Yield validity on a benchmark with trained-on and held-out facts. AUC (0 to 1): probability
    that a trained-on item has a larger margin than a held-out one (score of the correct option
    minus that of the best wrong one, in nats, mean over templates)."""
    if not study.splits:
        return
    yes, no = study.splits
    chance = 100 * float(study.random[no].mean())
    accuracy = partial(study.estimate, value="hit", is_proportion=len(study.templates) == 1)
    for (probe, answers), rows in zip(study.probes, study.hits, strict=True):
        margin = by_item(answers, "margin")["margin"].to_numpy()
        of, area = Number(**probe.dimensions), auc(margin[yes], margin[no])
        one, other = (accuracy(rows.filter(pl.Series(half))) for half in (yes, no))
        yield from validity.estimates(of, one, other, chance, area, probe.control)
