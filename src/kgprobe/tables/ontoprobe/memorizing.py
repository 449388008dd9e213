"""OntoProbe's numbers of memorizing, in per cent: Table 1, Appendix C.2, Table 4, Figures 5 to 7;
also groups of items, and soft prompts over seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from kgprobe.benchmarks.ontoprobe.concepts import TASKS
from kgprobe.metrics.intervals import Interval, percentile, standard_error, student
from kgprobe.metrics.sums import ordered_mean
from kgprobe.probes.baselines import frequency
from kgprobe.tables import results
from kgprobe.tables.answers import Probe
from kgprobe.tables.estimate import estimate
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.ontoprobe.values import CONFIGURATION, MEAN, METRICS, OTHERS
from kgprobe.tables.results import Number

#: answers of each probe: metrics per item and configuration
Answers = Mapping[Probe, pl.DataFrame]
#: benchmark -> (ITEMS, CANDIDATES)
Sets = Mapping[str, tuple[pl.DataFrame, pl.DataFrame]]
#: metrics that are hit rates: 0 or 100 per item, apart from ties
HIT_RATES = ("R@1", "R@5")
EVERY = (*METRICS, *OTHERS)
#: the paper's models, whose averages are given next to ours in Figures 5 to 7
PAPERS = "the paper's six models"
#: dimensions compared in Figures 5, 6 and 7 -> values
COMPARED = {"masks": ("multiple", "single"), "pooling": ("first", "max", "mean"),
            "loss": ("BCE", "NLL")}  # fmt: skip
WEIGHTINGS = ("configurations", "tasks and models")
#: a subset of the configurations, which Figure 5 is also given for
MANUAL = {"template": "manual", "pooling": "mean"}


def as_published(value: float | None, where: str) -> dict[str, object]:
    """Return a figure of the paper, if there is one, and its location."""
    return results.as_published(value, f"Wu et al. 2023, {where}")


def is_printed(probe: Probe) -> bool:
    """Return whether the paper may have the same model on the same rows (names are the hub's)."""
    return probe.source.startswith("hub:") and probe.benchmark == "onto_released"


def means(base: Number, rows: pl.DataFrame, metrics: Sequence[str], seed: int) -> Iterator[Number]:
    """Yield the mean of every metric over items, with its interval: Wilson's for HIT_RATES unless
    an item has a mean over seeds, else the bootstrap's, paired over configurations, since all have
    the same items."""
    rows, is_single = rows.sort("item"), not (rows["seed"] == MEAN).any()
    for metric in metrics if rows.height else ():
        each = rows.select(pl.col(metric) / 100)
        is_proportion = is_single and metric in HIT_RATES
        mean = estimate(each, metric, is_proportion=is_proportion, seed=seed)
        yield base.but(metric=metric, **mean)


def sizes(sets: Sets, given: pl.DataFrame) -> Iterator[Number]:
    """Yield Table 1: numbers of rows in train, dev, test and distinct test, and of candidates."""
    known = {row["task"]: row for row in given.iter_rows(named=True)}
    for benchmark, (items, candidates) in sets.items():
        rows = per_item.of_items(items)
        for (task,), group in rows.group_by("task", maintain_order=True):
            base = Number(metric="items", benchmark=benchmark, group=str(task))
            counts = {role: group.filter(role=role).height for role in ("train", "dev", "test")}
            counts["distinct test"] = per_item.select_test_rows(group).height
            for subset, n in counts.items():
                value = known.get(task, {}).get(subset) if benchmark == "onto_released" else None
                yield base.but(slice=subset, n=n, value=n, **as_published(value, "Table 1"))
            options = len(_candidate_indices(items, candidates, str(task)))
            yield base.but(metric="candidates", n=options, value=options)


def memorizing(
    probe: Probe, values: pl.DataFrame, given: Mapping[str, pl.DataFrame], tp_rows: str, seed: int
) -> Iterator[Number]:
    """Yield every configuration (C.2), and from these Table 4: chosen and fixed, with soft prompts
    averaged over seeds, and the oracle, the maximum of every metric on the test rows. The paper's
    Table 4 has such maxima, so its values are compared only with the oracle."""
    whole, model = per_item.over_seeds(values), probe.model if is_printed(probe) else ""
    picked, cells = per_item.choose(whole), _configurations(given["configurations"], model)
    kind = "soft" if probe.prompt == "soft" else "manual"
    four = _table4(given["memorizing"].filter(model=model, template=kind))
    test = per_item.select_test_rows(pl.concat([values, whole.filter(seed=MEAN)]), tp_rows)
    for task in TASKS:
        of_task = test.filter(task=task).sort(*CONFIGURATION, "item")
        base = Number(**probe.dimensions, group=task)
        by = {
            c: {x.metric: x for x in means(base.but(setting=_setting(c)), rows, EVERY, seed)}
            for c, rows in of_task.group_by(CONFIGURATION, maintain_order=True)
        }
        seeds = [c for c in by if c[-1] != MEAN]
        for c in seeds:
            for metric, number in by[c].items():
                printed = cells.get((task, *c[:4]), {}).get(metric)
                yield number.but(**as_published(printed, "Appendix C.2"))
        yield from _over_seeds(base, {c: by[c] for c in seeds if c[0] == "soft"})
        fixed = per_item.fixed(whole.filter(role="test"), task)
        for choice, chosen in (("chosen", picked.get(task)), ("fixed", fixed)):
            of_chosen = by.get(chosen or (), {})
            for metric in METRICS if of_chosen else ():
                yield replace(of_chosen[metric], setting={"choice": choice})
        for metric in METRICS if seeds else ():
            # the configuration of the highest value, the first by name among equals
            best = min((-(by[c][metric].value or 0.0), c) for c in seeds)[1]
            number = replace(by[best][metric], setting={"choice": "oracle"})
            yield number.but(**as_published(four.get((task, metric)), "Table 4"))


def _setting(configuration: Sequence[object]) -> dict[str, str | int]:
    """Return the settings of a configuration; loss and seed only for soft prompts."""
    names = CONFIGURATION if configuration[3] else CONFIGURATION[:3]
    return dict(zip(names, map(str, configuration), strict=False))


def _configurations(given: pl.DataFrame, model: str) -> dict[tuple[str, ...], dict[str, float]]:
    """Return Appendix C.2 as (task, configuration without seed) -> its row. The appendix calls m1
    manual1, and a single template manual."""
    template = pl.col("template").str.replace("manual$", "manual1").str.replace("manual", "m")
    masks = pl.col("masks").replace({"multiple": "multi"})
    rows = given.filter(model=model).with_columns(template, masks, pl.col("loss").fill_null(""))
    keys = rows.select("task", *CONFIGURATION[:4]).rows()
    return dict(zip(keys, rows.select(METRICS).rows(named=True), strict=True))


def _table4(given: pl.DataFrame) -> dict[tuple[str, str], float]:
    """Return (task, metric) -> the printed value."""
    return {(task, m): v for task, m, v in given.select("task", "metric", "value").rows()}


def _over_seeds(
    base: Number, by: Mapping[tuple[object, ...], Mapping[str, Number]]
) -> Iterator[Number]:
    """Yield means over the seeds of soft prompts with Student's interval, and their standard
    deviation, neither for one seed; n counts seeds."""
    for key in dict.fromkeys(c[:-1] for c in by):
        of = base.but(setting={**_setting((*key, "mean")), "weighting": "seeds"})
        for m in METRICS:
            seeds = [float(x[m].value or 0) for c, x in by.items() if c[:-1] == key]
            number = of.but(metric=m, n=len(seeds))
            yield number.but(value=sum(seeds) / len(seeds), interval=student(seeds))
            if len(seeds) > 1:
                sd = standard_error(seeds) * np.sqrt(len(seeds))
                yield number.but(value=sd, setting={"seed": "standard deviation"})


def groups(
    probe: Probe, values: pl.DataFrame, tp_rows: str, seed: int, select: str = "dev"
) -> Iterator[Number]:
    """Yield the chosen configuration by depth, golds, tokens of the most specific gold, popularity,
    and without items whose gold is part of the subject (leaks); also over all items if the test
    rows choose the configuration (`select` oracle), which the setting then states."""
    values = per_item.over_seeds(values)
    choice = "chosen" if select == "dev" else "chosen on test"
    for task, configuration in sorted(per_item.choose(values, select).items()):
        test = per_item.select_test_rows(values, tp_rows).filter(task=task)
        rows = per_item.of_configuration(test, configuration)
        subsets = {"": rows} if select != "dev" else {}
        for name, subset in {**subsets, **dict(_subsets(rows))}.items():
            base = Number(**probe.dimensions, group=task, slice=name, setting={"choice": choice})
            yield from means(base, subset, METRICS, seed)


def _subsets(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    if rows["leak"].any():
        yield "without leaks", rows.filter(~pl.col("leak"))
    names = ["depth"] if rows["task"][0] in ("TP", "SCO") else []
    for name in (*names, "golds", "tokens"):
        for value in rows[name].drop_nulls().unique().sort():
            yield f"{name} {value}", rows.filter(pl.col(name) == value)
    known = rows.drop_nulls("popularity")
    if known.height >= 30:
        cuts = [float(known["popularity"].quantile(q) or 0) for q in (1 / 3, 2 / 3)]
        low, high = pl.col("popularity") <= cuts[0], pl.col("popularity") > cuts[1]
        for name, subset in {"low": low, "middle": ~low & ~high, "high": high}.items():
            yield f"popularity {name}", known.filter(subset)


def baselines(
    sets: Sets, given: pl.DataFrame, tp_rows: str, seed: int, recall: str = "hit"
) -> Iterator[Number]:
    """Yield the frequency baseline of every benchmark, the result of a random order of candidates,
    and the highest possible MRRa; `recall` as in values.metrics. Intervals of MRR and MRRa contain
    95 % of the random orders of the candidates that were not counted."""
    known = _table4(given.filter(model="frequency-baseline"))
    for benchmark, (items, candidates) in sets.items():
        rows = per_item.of_items(items).join(items.select("item", "answers"), on="item").sort("row")
        for task in TASKS:
            test = per_item.select_test_rows(rows.filter(task=task), tp_rows)
            train = _train_golds(sets, benchmark, task)
            if not train or not test.height:
                continue
            size = len(_candidate_indices(items, candidates, task))
            ranked = frequency.rank(train, test["answers"].to_list(), size, seed, recall=recall)
            base = Number(n=test.height, benchmark=benchmark, group=task)
            base = base.but(model="frequency", setting={"choice": "none"})
            measured = {f"R@{k}": results.hit_rate(hits) for k, hits in ranked.hits.items()}
            for metric, orders in (("MRRa", ranked.mrra), ("MRR", ranked.mrr)):
                tails = 100 * orders.mean(axis=1)
                bounds = Interval(*percentile(tails), "random orders")
                measured[metric] = {"value": tails.mean(), "interval": bounds}
            for metric, fields in measured.items():
                theirs = known.get((task, metric)) if benchmark == "onto_released" else None
                yield base.but(metric=metric, **fields, **as_published(theirs, "Table 4"))
            for metric, value in frequency.at_random(test["golds"].to_list(), size, recall).items():
                yield base.but(model="random", setting={}, metric=metric, value=100 * value)
            ceiling = float((200.0 / (test["golds"] + 1)).mean())  # type: ignore[arg-type]
            yield base.but(metric="ceiling of MRRa", value=ceiling)


def _train_golds(sets: Sets, benchmark: str, task: str) -> list[list[int]]:
    """Return golds of the training rows in file order, as indices of the benchmark's candidates. A
    subset without training rows uses those of the full set that are among its candidates."""
    whole = benchmark.removesuffix("_lite")
    for name in (benchmark, whole) if whole in sets else (benchmark,):
        rows = sets[name][0].filter(relation=task, role="train").sort("row")["answers"].to_list()
        if rows:
            here, there = (_candidate_indices(*sets[n], task) for n in (benchmark, name))
            labels = {index: label for label, index in there.items()}
            return [[here[labels[g]] for g in golds if labels[g] in here] for golds in rows]
    return []


def _candidate_indices(items: pl.DataFrame, candidates: pl.DataFrame, task: str) -> dict[str, int]:
    """Return label -> index of the candidates that a task's rows rank."""
    name = items.filter(relation=task)["candidates"][0]
    return dict(candidates.filter(set=name).select("label", "index").rows())


def averages(rows: pl.DataFrame, by: str, weighting: str) -> pl.DataFrame:
    """Return the mean of METRICS per value of `by`, over equally weighted units (`_weighed_alike`)
    of rows of configurations (task, model, ..., METRICS), and the number of these rows (`rows`)."""
    count = rows.filter(pl.col(by).fill_null("") != "").group_by(by).agg(pl.len().alias("rows"))
    means = _weighed_alike(rows, by, weighting).group_by(by).agg(ordered_mean(METRICS))
    return means.join(count, on=by).sort(by)


def _weighed_alike(rows: pl.DataFrame, by: str, weighting: str) -> pl.DataFrame:
    """Return the equally weighted units of an average: the configurations, or the pairs of task and
    model. A missing MRRa is the MRR (one gold)."""
    rows = rows.with_columns(pl.col("MRRa").fill_null(pl.col("MRR")))
    rows = rows.filter(pl.col(by).fill_null("") != "")
    if weighting == WEIGHTINGS[0]:
        return rows.sort(rows.columns)
    pair = [name for name in (by, "task", "model", "benchmark") if name in rows.columns]
    return rows.group_by(pair).agg(ordered_mean(METRICS)).sort(pair)


def _select_ranked(answers: Answers, tp_rows: str) -> pl.DataFrame:
    """Return test rows of all ranked configurations with the dimensions of their probes, and masks
    as named in Figure 5; soft prompts count once, as the mean over seeds."""
    subsets = []
    for probe, values in answers.items():
        rows = per_item.over_seeds(values.filter(pl.col("masks") != "sentence"))
        who = {name: pl.lit(value) for name, value in probe.dimensions.items()}
        subsets.append(per_item.select_test_rows(rows, tp_rows).with_columns(**who))
    return pl.concat(subsets).with_columns(pl.col("masks").replace({"multi": "multiple"}))


def compare_configurations(
    answers: Answers, given: pl.DataFrame, tp_rows: str, seed: int
) -> Iterator[Number]:
    """Yield Figures 5 to 7, and Figure 5 for the configurations MANUAL alone: averages over the
    configurations ranked here, with intervals over equally weighted units, and over those of the
    paper's models, recomputed from C.2, which are published figures of ours only if models and
    benchmark are the same. n: configurations."""
    who = ["benchmark", "model", "prompt", "method"]
    means = _select_ranked(answers, tp_rows).group_by("task", *CONFIGURATION, *who)
    ours = means.agg(ordered_mean(METRICS)).select("task", *CONFIGURATION, *METRICS, *who)
    is_same = {p.model for p in answers} == set(given["model"]) and all(map(is_printed, answers))
    nothing: dict[str, str] = {}
    figures = [(number, by, nothing, given, ours) for number, by in enumerate(COMPARED, 5)]
    figures.append((5, "masks", MANUAL, given.filter(_is_manual()), ours.filter(_is_manual())))
    for number, by, subset, theirs_, ours_ in figures if ours.height else ():
        for weighting in WEIGHTINGS:
            known, measured = (
                {r[by]: r for r in averages(rows, by, weighting).iter_rows(named=True)}
                for rows in (theirs_, ours_)
            )
            groups_of = dict(_weighed_alike(ours_, by, weighting).group_by(by))
            setting = {**subset, "weighting": weighting}
            for value, row in measured.items():
                base = Number(n=row["rows"], setting={**setting, by: value})
                each = groups_of[value,].select(pl.col(METRICS) / 100)
                for m in METRICS:
                    bounds = estimate(each, m, seed=seed)["interval"] if each.height > 1 else None
                    theirs = known.get(value, {}).get(m) if is_same else None
                    # the paper has no figure of the subset
                    where = "Appendix C.2" if subset else f"Figure {number}"
                    more = as_published(theirs, where)
                    yield base.but(metric=m, value=row[m], interval=bounds, **more)
            for value, row in known.items() if measured else ():
                base = Number(n=row["rows"], model=PAPERS, method="published")
                base = base.but(setting={**setting, by: value})
                for m in METRICS:
                    yield base.but(metric=m, value=row[m], **as_published(row[m], "Appendix C.2"))


def _is_manual() -> pl.Expr:
    """Select the configurations MANUAL: any manual template, with the mean over tokens."""
    return pl.col("template").str.starts_with("m") & (pl.col("pooling") == MANUAL["pooling"])
