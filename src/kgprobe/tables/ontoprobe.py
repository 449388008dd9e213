"""OntoProbe's tables of memorising: sizes (Table 1), configurations (C.2), Table 4, and groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.benchmarks.ontoprobe_concepts import TASKS
from kgprobe.metrics.intervals import percentile
from kgprobe.metrics.sums import ordered_mean
from kgprobe.probes.baselines import frequency
from kgprobe.tables import marks, ontoprobe_averages, ontoprobe_values, table
from kgprobe.tables.ontoprobe_means import means
from kgprobe.tables.ontoprobe_values import CONFIGURATION, METRICS, OTHERS

#: how a configuration was chosen -> words
CHOICES = {
    "chosen": "one configuration, chosen on the dev rows",
    "fixed": "the fixed configuration: m, mean, last template (soft: BCE)",
    "oracle": "oracle (per-metric maximum on test)",
}
#: whose averages stand in rows of their own in the table of Figures 5 to 7
PAPERS = "the paper's six models"
Cell = dict[str, object]


@dataclass(frozen=True)
class Answered:
    """What one model answered on one benchmark: metrics per item and configuration.

    `published` is the model's name in the paper, "" where it is not in it; `complete`: the
    benchmark is the released one with all its rows.
    """

    model: str
    benchmark: str
    kind: str
    control: bool
    published: str
    complete: bool
    values: pl.DataFrame

    @property
    def label(self) -> str:
        """The model as tables show it; a control model is always labelled so."""
        return f"{self.model} (control)" if self.control else self.model


def sizes(
    sets: Mapping[str, tuple[pl.DataFrame, pl.DataFrame]], printed: pl.DataFrame
) -> pl.DataFrame:
    """TABLE `ontoprobe_sizes` (Table 1): rows of train, dev, test and distinct test rows, and the
    candidates that each row ranks. `sets`: benchmark -> (ITEMS, CANDIDATES).
    """
    published = {
        (row["task"], part): float(row[part])
        for row in printed.iter_rows(named=True)
        for part in ("train", "dev", "test")
        if row[part] is not None
    }
    cells = []
    for benchmark, (frame, candidates) in sets.items():
        known = ontoprobe_values.of_items(frame)
        for task in TASKS:
            own = known.filter(task=task)
            counts = {r: own.filter(role=r).height for r in ("train", "dev", "test")}
            counts["distinct test"] = own.filter(~pl.col("repeat"), role="test").height
            if own.height:
                counts["candidates"] = len(_places(frame, candidates, task))
            for column, n in counts.items():
                given = published.get((task, column)) if benchmark == "onto_released" else None
                cells.append(_cell("sizes", f"{benchmark} | {task}", column, n, n, None, given))
    return table.build(cells)


def configurations(
    answered: Sequence[Answered], printed: pl.DataFrame, tp_rows: str, seed: int
) -> pl.DataFrame:
    """TABLE `ontoprobe_configurations` (C.2): every configuration, paper's order, with intervals.

    Rows are "model | benchmark | task | configuration"; columns the metrics in per cent.
    """
    given = _printed_configurations(printed)
    cells: list[Cell] = []
    for own in answered:
        test = ontoprobe_values.asked_rows(own.values, tp_rows)
        for (task, *configuration), group in _groups(test):
            name = f"{own.label} | {own.benchmark} | {task} | "
            row = name + ontoprobe_values.spoken(tuple(configuration))
            key = (own.published, task, *configuration[:4])
            for metric, value, interval in means(group, (*METRICS, *OTHERS), seed):
                known = given.get((*key, metric)) if own.complete and own.published else None
                cells.append(
                    _cell("configurations", row, metric, value, group.height, interval, known)
                )
    return table.build(cells)


def memorising(
    answered: Sequence[Answered], printed: pl.DataFrame, tp_rows: str, seed: int
) -> pl.DataFrame:
    """TABLE `ontoprobe_memorising` (Table 4): chosen, fixed and oracle, manual and soft.

    Rows are "model | benchmark | task | manual or soft | choice". Soft prompts are chosen and
    printed as the mean over their seeds; the oracle may take the best seed. The printed values are
    maxima of every metric on the test rows, so that they stand beside the oracle alone.
    """
    given = {
        (r["model"], r["task"], r["template"], r["metric"]): r["value"]
        for r in printed.iter_rows(named=True)
    }
    cells: list[Cell] = []
    for own in answered:
        for kind, every in kinds(own.values):
            values = ontoprobe_values.over_seeds(every)
            picked = ontoprobe_values.choose(values)
            test = ontoprobe_values.asked_rows(values, tp_rows)
            seeds = ontoprobe_values.asked_rows(every, tp_rows)
            for task in [t for t in TASKS if test.filter(task=t).height]:
                rows = test.filter(task=task)
                start = f"{own.label} | {own.benchmark} | {task} | {kind}"
                ways = {"chosen": picked.get(task), "fixed": ontoprobe_values.fixed(rows, task)}
                for way, configuration in ways.items():
                    if configuration is None:
                        continue
                    group = ontoprobe_values.of_configuration(rows, configuration)
                    for metric, value, interval in means(group, METRICS, seed):
                        cells.append(
                            _cell(
                                "memorising",
                                f"{start} | {way}",
                                metric,
                                value,
                                group.height,
                                interval,
                            )
                        )
                for metric in METRICS:
                    best = _best(seeds.filter(task=task), metric)
                    known = given.get((own.published, task, kind, metric)) if own.complete else None
                    ((_, value, interval),) = means(best, (metric,), seed)
                    row = f"{start} | oracle"
                    cells.append(
                        _cell("memorising", row, metric, value, best.height, interval, known)
                    )
    return table.build(cells)


def baselines(
    sets: Mapping[str, tuple[pl.DataFrame, pl.DataFrame]],
    printed: pl.DataFrame,
    tp_rows: str,
    seed: int,
) -> pl.DataFrame:
    """TABLE `ontoprobe_baseline`: the frequency baseline of every benchmark, (items, candidates).

    A set without training rows of its own, a part of a whole one, counts those of the whole. The
    interval holds 95 % of the random orders of the candidates that were not counted.
    """
    given = {
        (r["task"], r["metric"]): r["value"]
        for r in printed.iter_rows(named=True)
        if r["model"] == "frequency-baseline"
    }
    cells = []
    for benchmark, (items, candidates) in sets.items():
        known = ontoprobe_values.of_items(items)
        for task in TASKS:
            own = known.filter(task=task).join(
                items.select("item", "answers", "candidates"), on="item"
            )
            own = own.sort("row")
            test = own.filter(role="test")
            test = test if tp_rows == "all" else test.filter(~pl.col("repeat"))
            train = _train_golds(sets, benchmark, task)
            if not train or not test.height:
                continue
            size = len(_places(items, candidates, task))
            ranked = frequency.rank(train, test["answers"].to_list(), size, seed)
            row = f"frequency baseline | {benchmark} | {task}"
            for k in (1, 5):
                printed_value = (
                    given.get((task, f"R@{k}")) if benchmark == "onto_released" else None
                )
                hits = pl.DataFrame({"hit": 100.0 * ranked.hits[k].astype(float).ravel()})
                ((_, value, interval),) = means(hits, ("hit",), seed)
                cells.append(
                    _cell("baseline", row, f"R@{k}", value, test.height, interval, printed_value)
                )
            for metric, numbers in (("MRRa", ranked.mrra), ("MRR", ranked.mrr)):
                tails = 100 * numbers.mean(axis=1)
                printed_value = given.get((task, metric)) if benchmark == "onto_released" else None
                interval = percentile(tails)
                value = float(tails.mean())
                cells.append(
                    _cell("baseline", row, metric, value, test.height, interval, printed_value)
                )
            ceiling = float((200.0 / (test["golds"] + 1)).mean())  # type: ignore[arg-type]
            cells.append(_cell("baseline", row, "ceiling of MRRa", ceiling, test.height))
    return table.build(cells)


def _train_golds(
    sets: Mapping[str, tuple[pl.DataFrame, pl.DataFrame]], benchmark: str, task: str
) -> list[list[int]]:
    """Golds of the training rows in file order, as indices of the benchmark's own candidates.

    Those of the whole set where a part has no training rows; a gold that is no candidate of the
    part cannot be ranked there, and is left out.
    """
    whole = benchmark.removesuffix("_lite")
    for name in (benchmark, whole) if whole in sets else (benchmark,):
        items, _ = sets[name]
        rows = items.filter(relation=task, role="train").sort("row")["answers"].to_list()
        if rows:
            here, there = (_places(*sets[n], task) for n in (benchmark, name))
            labels = {index: label for label, index in there.items()}
            return [[here[labels[g]] for g in golds if labels[g] in here] for golds in rows]
    return []


def _places(items: pl.DataFrame, candidates: pl.DataFrame, task: str) -> dict[str, int]:
    """Label -> index of the candidates that a task's rows rank."""
    name = items.filter(relation=task)["candidates"][0]
    return dict(candidates.filter(set=name).select("label", "index").rows())


def averages(
    answered: Sequence[Answered], printed: pl.DataFrame, tp_rows: str, seed: int = 0
) -> pl.DataFrame:
    """TABLE `ontoprobe_averages` (Figures 5 to 7): ours, and the paper's recomputed from C.2.

    Rows are "figure | value | weighting | models"; only cloze rankings take part, and intervals are
    those over configurations (pairs of task and model where they weigh equally). The paper's are
    rows of their own, as they are means over its six models. They stand beside ours as published
    only where ours are the same six models on the whole released benchmark.
    """
    rows = []
    same = {a.published for a in answered if a.complete} == set(printed["model"].unique())
    same &= all(a.complete and a.published for a in answered)
    whose = ", ".join(dict.fromkeys(a.label for a in answered if _is_ranked(a)))
    for own in answered:
        values = ontoprobe_values.over_seeds(own.values)
        test = ontoprobe_values.asked_rows(values, tp_rows).filter(pl.col("masks") != "sentence")
        every = test.group_by("task", *CONFIGURATION).agg(ordered_mean(METRICS))
        rows.append(every.with_columns(model=pl.lit(marks.bare(f"{own.label} | {own.benchmark}"))))
    ours = pl.concat(rows).with_columns(
        pl.col("masks").replace({"multi": "multiple"}), loss=pl.col("loss").replace({"": None})
    )
    cells: list[Cell] = []
    for figure, by in ontoprobe_averages.FIGURES.items():
        if not ours.filter(pl.col(by).is_not_null()).height:
            continue
        for weighting in ("rows", "weighted"):
            theirs = {
                r[by]: r
                for r in ontoprobe_averages.averages(printed, by, weighting).iter_rows(named=True)
            }
            bounds = ontoprobe_averages.bounds(ours, by, weighting, seed)
            for r in ontoprobe_averages.averages(ours, by, weighting).iter_rows(named=True):
                row = f"Figure {figure} | {r[by]} | {weighting} | {whose}"
                for m in METRICS:
                    known = theirs.get(r[by], {}).get(m) if same else None
                    interval = bounds.get((r[by], m))
                    cells.append(_cell("averages", row, m, r[m], r["rows"], interval, known))
            for value, r in theirs.items():
                row = f"Figure {figure} | {value} | {weighting} | {PAPERS}"
                cells += [_cell("averages", row, m, r[m], r["rows"]) for m in METRICS]
    return table.build(cells)


def _best(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The rows of the configuration with the highest mean of a metric."""
    mean = rows.group_by(CONFIGURATION).agg(ordered_mean(metric))
    order = [metric, *CONFIGURATION]
    first = mean.sort(order, descending=[True, *[False] * len(CONFIGURATION)]).row(0)
    return ontoprobe_values.of_configuration(rows, first[: len(CONFIGURATION)])


def _is_ranked(own: Answered) -> bool:
    """Whether some of a model's answers are cloze rankings."""
    return bool((own.values["masks"] != "sentence").any())


def kinds(values: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """(manual or soft, rows of that kind of template) for those that occur."""
    for kind in ("manual", "soft"):
        rows = values.filter((pl.col("template") == "soft") == (kind == "soft"))
        if rows.height:
            yield kind, rows


def _groups(test: pl.DataFrame) -> Iterator[tuple[tuple[object, ...], pl.DataFrame]]:
    """Groups by task and configuration in the paper's order of rows."""
    order = {name: number for number, name in enumerate(TASKS)}
    found = test.with_columns(
        _task=pl.col("task").replace_strict(order, return_dtype=pl.Int64),
        _soft=pl.col("template") != "soft",
    ).sort("_task", "masks", "pooling", "_soft", "loss", "template", "seed", "item")
    yield from found.group_by("task", *CONFIGURATION, maintain_order=True)


def _printed_configurations(printed: pl.DataFrame) -> dict[tuple[object, ...], float]:
    found: dict[tuple[object, ...], float] = {}
    for row in printed.iter_rows(named=True):
        template = {"soft": "soft", "manual": "m1"}.get(
            row["template"], row["template"].replace("manual", "m")
        )
        masks = {"multiple": "multi"}.get(row["masks"], row["masks"])
        for metric in METRICS:
            key = (row["model"], row["task"], template, masks, row["pooling"], row["loss"] or "")
            if row[metric] is not None:
                found[(*key, metric)] = row[metric]
    return found


def _cell(
    name: str,
    row: str,
    column: str,
    value: float,
    n: int,
    interval: tuple[float, float] | None = None,
    published: float | None = None,
) -> Cell:
    return table.cell(
        f"ontoprobe_{name}", row, column, value, n, interval, published, paper="ontoprobe"
    )
