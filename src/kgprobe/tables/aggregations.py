"""Results under other score aggregations, with the controls that a gain requires.

A probe's own aggregation (BEAR's: the sum of a sentence's terms) comes first. The others are the
sum, the mean over tokens, the mean over bytes, the answer's part, and the sum corrected by a prior:
the option's mean over its relation's questions about subjects of other folds, or over content-free
subjects. The setting `aggregation` is absent for BEAR's own.

A gain is meaningful only next to the gain where nothing was learned: held-out facts of control
models, and golds permuted among the items of their relation that share their options (the mean of
200 permutations, and what follows from the distributions of golds and answers alone). Both are
given for all items and for a subset with skewed golds: of the r-th answer of a relation (in seeded
order) 1/r of its questions stay, with the prior over other subjects computed on the subset.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.experiments import is_control
from kgprobe.metrics.aggregations import PERMUTATIONS, permute_golds, zipf_sample
from kgprobe.metrics.intervals import Interval, percentile
from kgprobe.metrics.ranking import auc
from kgprobe.sampling import hash_key
from kgprobe.tables.answers import (
    CONTENT_FREE,
    OF_ANSWERS,
    PRIOR,
    PRIOR_IS,
    Probe,
    coinciding,
    judge_scores,
    with_bytes,
    with_content_free,
    with_priors,
)
from kgprobe.tables.results import Number
from kgprobe.tables.study import Study, by_item
from kgprobe.tables.views import View
from kgprobe.templates import NO_SUBJECTS

#: aggregations other than a probe's own, in printing order
OTHERS = ("sum", "mean", "byte_mean", "answer_only", PRIOR, CONTENT_FREE)
#: the subset of the items whose golds are skewed
SKEWED = "skewed"
#: (aggregation, subset) -> judged answers; the first is the probe's own, of all items
Readings = Mapping[tuple[str, str], pl.DataFrame]


def _names(study: Study) -> list[str]:
    """List the study's own aggregation, then the others."""
    aggregation = study.aggregation or "sum"
    return [study.aggregation, *(name for name in OTHERS if name != aggregation)]


def _labels(study: Study) -> pl.DataFrame | None:
    """Return the CANDIDATES if every item has options of its own, which are then identified by
    their labels in priors and the skewed subset; else None."""
    return study.candidates if study.items["candidates"].is_unique().all() else None


def readings(
    base: pl.DataFrame, scores: pl.DataFrame, study: Study, content_free: pl.DataFrame | None = None
) -> Readings:
    """Judge SCORES under every aggregation, for all items and for the skewed subset.

    `base`: judged by the probe's own aggregation; `content_free`: CONTENT_FREE of the probe. An
    aggregation is absent where it is undefined: the answer's part if no token of an answer is
    scored, the prior of content-free subjects if none was asked.
    """
    items, seed, labels = study.items, study.seed, _labels(study)
    ready = with_bytes(scores, items, study.candidates, study.prompts)
    ready = with_priors(ready, items, seed, labels)
    lacking = [] if (scores["answer_count"] > 0).all() else list(OF_ANSWERS)
    if content_free is None:
        lacking.append(CONTENT_FREE)
    else:
        ready = with_content_free(ready, items, content_free)
    judged = {(study.aggregation, ""): base}
    for name in _names(study)[1:]:
        if name not in lacking:
            judged[name, ""] = judge_scores(ready, items, name)
    part = items.filter(skewed(items, seed, labels))
    for (name, _), answers in list(judged.items()):
        judged[name, SKEWED] = answers.join(part.select("item"), on="item", how="semi")
    fewer = scores.join(part.select("item"), on="item", how="semi")
    fewer = with_priors(fewer, part, seed, labels)
    judged[PRIOR, SKEWED] = judge_scores(fewer, part, PRIOR)
    return judged


def skewed(items: pl.DataFrame, seed: int, labels: pl.DataFrame | None = None) -> pl.Series:
    """Return which ITEMS are in the subset with skewed golds; `labels`: from `_labels`."""
    rows = items.with_row_index("_at").with_columns(gold=pl.col("answers").list.first())
    if labels is not None:
        named = labels.select(candidates="set", gold="index", label="label")
        rows = rows.join(named, on=["candidates", "gold"]).with_columns(gold="label")
    rows = rows.sort("relation", "item")
    kept: list[int] = []
    for (relation,), group in rows.group_by("relation", maintain_order=True):
        answers = group["gold"].cast(pl.String).to_list()
        chosen = zipf_sample(answers, group["item"].to_list(), seed, str(relation))
        kept += group["_at"].filter(pl.Series(chosen)).to_list()
    return pl.int_range(items.height, eager=True).is_in(kept)


def count_coinciding(study: Study) -> Iterator[Number]:
    """Yield the number of "coinciding options", those that read the same as another, if any."""
    options = study.candidates.filter(pl.col("set").is_in(study.items["candidates"].implode()))
    if double := coinciding(options).height:
        of = Number(benchmark=study.benchmark, group=study.group, n=options.height)
        yield of.but(metric="coinciding options", value=double)


def estimates(study: Study, probe: Probe, judged: Readings) -> Iterator[Number]:
    """Yield every number of a probe's aggregations.

    Metrics: accuracy, gain (over the own aggregation, paired), trained-on, held-out, AUC, "permuted
    golds", "permuted golds, expected"; "without prior" counts items that have none, "not permuted"
    those whose gold cannot be exchanged. Slices: "", "skewed", for a gain "trained-on" and
    "held-out". Numbers of the own aggregation that BEAR's tables already have are omitted.
    """
    for (name, part), answers in judged.items():
        base = judged[study.aggregation, part]
        yield from _reading(study, probe, base, answers, name, part)
        if name and not part:
            yield from _gain_by_split(study, probe, base, answers, name)


def _of(study: Study, probe: Probe, name: str, **more: Any) -> Number:
    setting = {"aggregation": name} if name else {}
    return Number(setting=setting, group=study.group, **probe.dimensions, **more)


def _reading(
    study: Study, probe: Probe, base: pl.DataFrame, rows: pl.DataFrame, name: str, part: str
) -> Iterator[Number]:
    """Yield accuracy and gain of an aggregation on a subset, and accuracy with permuted golds."""
    of = _of(study, probe, name, slice=part)
    if lost := base["item"].n_unique() - rows["item"].n_unique():
        yield of.but(metric="without prior", value=lost, n=study.count(base["item"]))
    if not rows.height:
        return
    if name or part:
        yield from _accuracy(study, of, base, rows)
    yield from _permute_golds(study, of, rows)


def _accuracy(
    study: Study, of: Number, base: pl.DataFrame, answers: pl.DataFrame
) -> Iterator[Number]:
    """Yield the accuracy, and its gain over the own aggregation on the same items."""
    both = by_item(answers).join(by_item(base), on="item", suffix="_own", maintain_order="left")
    is_proportion = answers["template"].n_unique() == 1
    yield of.but(metric="accuracy", **study.estimate(both, "hit", is_proportion=is_proportion))
    if of.setting and of.setting["aggregation"] != study.aggregation:
        yield of.but(metric="gain", **study.estimate(both, "hit", less="hit_own"))


def _gain_by_split(
    study: Study, probe: Probe, base: pl.DataFrame, answers: pl.DataFrame, name: str
) -> Iterator[Number]:
    """Yield accuracy and gain on trained-on and held-out facts, and the AUC that separates them."""
    margins, n = list[NDArray[np.float64]](), 0
    for half, chosen in zip(("trained-on", "held-out"), study.splits or (), strict=False):
        inside = study.ordered.filter(pl.Series(chosen)).select("item")
        mine, theirs = (a.join(inside, on="item", how="semi") for a in (answers, base))
        if not mine.height:
            return
        margins.append(by_item(mine, "margin")["margin"].to_numpy())
        n += study.count(mine["item"])
        for number in _accuracy(study, _of(study, probe, name), theirs, mine):
            if number.metric == "accuracy":
                yield number.but(metric=half)
            else:
                yield number.but(slice=half)
    if margins:
        yield _of(study, probe, name, metric="AUC", value=auc(*margins), n=n)


def _permute_golds(study: Study, of: Number, answers: pl.DataFrame) -> Iterator[Number]:
    """Yield the accuracy after permuting the golds among a relation's items that share options: one
    permutation for all templates, since an item has one gold. Items that share their options with
    no other keep their gold; they are left out and counted."""
    items = study.items.select("item", "answers", set="candidates")
    rows = answers.join(items, on="item").with_columns(
        # an item weighs the same, however many templates its relation has
        weight=1 / (pl.len().over("item") * pl.col("leaders")),
        alone=pl.col("item").n_unique().over("relation", "set") == 1,
    )
    every, rows = rows["item"].unique(), rows.filter(~pl.col("alone"))
    n = rows["item"].n_unique()
    if lost := len(every) - n:
        yield of.but(metric="not permuted", value=lost, n=study.count(every))
    if not n:
        return
    hits, expected = np.zeros(PERMUTATIONS), 0.0
    rows = rows.sort("relation", "set", "item", "template")
    for (relation, options), group in rows.group_by("relation", "set", maintain_order=True):
        golds = group.unique("item", keep="first", maintain_order=True)["answers"]
        size = 1 + int(pl.concat([group["answers"], group["leading"]]).explode().to_numpy().max())
        answered = _indicator(group["leading"], size) * group["weight"].to_numpy()[:, None]
        first = np.flatnonzero(group["item"].to_numpy()[1:] != group["item"].to_numpy()[:-1]) + 1
        answered = np.add.reduceat(answered, [0, *first])
        seed = hash_key(study.seed, "permuted", str(relation), str(options))
        drawn, mean = permute_golds(answered, _indicator(golds, size), seed)
        hits, expected = hits + drawn, expected + mean
    of, shares = of.but(n=study.count(rows["item"].unique())), 100 * hits / n
    bounds = Interval(*percentile(shares), "permutations")
    yield of.but(metric="permuted golds", value=float(shares.mean()), interval=bounds)
    yield of.but(metric="permuted golds, expected", value=100 * expected / n)


def _indicator(chosen: pl.Series, size: int) -> NDArray[np.float64]:
    """Return a matrix (rows x options): 1 where an option is in the row's list."""
    matrix = np.zeros((len(chosen), size))
    lengths = chosen.list.len().to_numpy()
    matrix[np.repeat(np.arange(len(chosen)), lengths), chosen.explode().to_numpy()] = 1.0
    return matrix


WORDS = {
    ("metric", "gain"): "gain, points",
    ("metric", "trained-on"): "trained-on, %",
    ("metric", "held-out"): "held-out, %",
    ("metric", "permuted golds"): "permuted golds, %",
    ("metric", "permuted golds, expected"): "expected of them, %",
    ("metric", "not permuted"): "items not permuted",
    ("metric", "accuracy"): "accuracy, %",
    ("slice", "trained-on"): "of trained-on facts",
    ("slice", "held-out"): "of held-out facts",
    ("slice", SKEWED): "skewed golds",
    ("aggregation", ""): "sum",
    ("aggregation", "sum"): "sum",
    ("aggregation", "mean"): "mean over tokens",
    ("aggregation", "byte_mean"): "mean over bytes",
    ("aggregation", "answer_only"): "answer's part",
    ("aggregation", "answer_mean"): "mean over the answer's tokens",
    ("aggregation", PRIOR): "prior-corrected",
    ("aggregation", CONTENT_FREE): "corrected by content-free subjects",
}
#: every aggregation, no other setting
EVERY = {
    "aggregation": ["", "answer_mean", *OTHERS],
    **{name: [""] for name in ("instead", "mode", "pooling", "template", "weighting")},
}
PROBE = ["model", "prompt", "method"]
AGGREGATIONS = View(
    "aggregations",
    "Accuracy under other aggregations",
    where={
        **EVERY,
        "metric": ["accuracy", "gain", "trained-on", "held-out", "AUC"],
        "slice": ["", "trained-on", "held-out"],
    },
    rows=["benchmark", *PROBE, "aggregation"],
    columns=["metric", "slice"],
    words=WORDS,
    digits={"AUC": 3},
    caption="Gains over the first aggregation of a probe are paired. A gain on held-out facts "
    f"does not come from knowledge. {PRIOR_IS}",
)
GOLDS = View(
    "golds",
    "Aggregations with permuted and with skewed gold answers",
    where={
        **EVERY,
        "metric": [
            "accuracy",
            "gain",
            "permuted golds",
            "permuted golds, expected",
            "not permuted",
        ],
        "slice": ["", SKEWED],
    },
    rows=["benchmark", *PROBE, "aggregation"],
    columns=["slice", "metric"],
    words=WORDS,
    digits={"not permuted": 0},
    caption="Permuted: accuracy after permuting the gold answers among the items of a relation "
    "that share their options, with the same permutation for all templates; mean and central 95 % "
    "of 200 permutations. Expected: from the distributions of gold answers and predictions alone. "
    "An item that shares its options with no other keeps its gold answer and is counted as not "
    "permuted. Skewed: 1/r of the questions with the r-th answer of a relation, with separately "
    f"computed priors. A dash: no token of the answer is scored. {PRIOR_IS}",
)


#: problem counted among the questions -> what is counted, and the note on the counts
PROBLEMS = {
    "coinciding options": (
        "option",
        "Equal to another option of their set up to case, white space and Unicode form, and still "
        "a separate answer: {}.",
    ),
    "without wrong option": ("item", "Left out, since no option is wrong: {}."),
}
#: prior -> the note on the items that have none
WITHOUT = {
    PRIOR: "Without a prior, since no other subject is asked about the relation with the same "
    "options, and left out of the corrected accuracy and its gain: {}.",
    CONTENT_FREE: "Without a prior of content-free subjects, since at most "
    f"{len(NO_SUBJECTS)} subjects share the options, and left out there: {{}}.",
}


def notes(
    results: pl.DataFrame, models: Mapping[str, Mapping[str, str]], aggregation: str = ""
) -> list[str]:
    """Write notes on the aggregations in these RESULTS, by benchmark and group.

    `models`: rows of models.tsv by name; `aggregation`: the probes' own. The notes name, for every
    control model, the aggregation that best separates trained-on from held-out facts.
    """
    several = results["benchmark"].n_unique() > 1
    lines = [
        note.format(count)
        for metric, (what, note) in PROBLEMS.items()
        if (count := _count_problems(results.filter(metric=metric), what, several))
    ]
    lost = results.filter(metric="without prior", slice="")
    for name, note in WITHOUT.items():
        if count := _count_problems(lost.filter(aggregation=name), "item", several):
            lines.append(note.format(count))
    controls = [name for name, row in models.items() if is_control(row)]
    areas = results.filter(
        # a paper's own calibration may have an AUC without an aggregation
        pl.col("model").is_in(controls),
        pl.col("aggregation").is_in([aggregation, *OTHERS]),
        metric="AUC",
        slice="",
    )
    by = areas.group_by(*PROBE, "benchmark", "group", maintain_order=True)
    best = [_best(models[str(key[0])]["kind"], rows, aggregation, several) for key, rows in by]
    if best := [one for one in best if one]:
        lines.append(
            "Aggregation that separates trained-on from held-out facts best (AUC of margins; in "
            f"parentheses, that of the probe's own aggregation): {'; '.join(best)}."
        )
    return lines


def _count_problems(rows: pl.DataFrame, what: str, several: bool) -> str:
    """Format the largest count of each benchmark and group, of `what`; "" if there is none."""
    most = rows.group_by("benchmark", "group").agg(pl.col("value").max())
    counts = most.filter(pl.col("value") > 0).sort("benchmark", "group").rows()
    return ", ".join(
        f"{n:.0f} {what}{'s' * (n != 1)}{_of_part(b, g, several)}" for b, g, n in counts
    )


def _of_part(benchmark: str, group: str, several: bool) -> str:
    """Format a benchmark, if there are several or a group is given, and its group."""
    named = [benchmark] * (several or bool(group)) + [group] * bool(group)
    return f" of {', '.join(named)}" if named else ""


def _best(kind: str, rows: pl.DataFrame, aggregation: str, several: bool) -> str:
    """Format the aggregations with the largest AUC of one probe; "" if it has only its own."""
    values = dict(rows.select("aggregation", "value").rows())
    if aggregation not in values or len(values) < 2:
        return ""
    most, first = max(values.values()), rows.row(0, named=True)
    names = [WORDS["aggregation", name] for name, value in values.items() if value == most]
    text = f"{kind}, {first['method']}{_of_part(first['benchmark'], first['group'], several)}"
    return f"{text}: {' and '.join(names)} {most:.3f} ({values[aggregation]:.3f})"
