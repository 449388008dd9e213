"""BEAR's tables: accuracy per model, relation and domain, beside the published figures.

Accuracies are in per cent; n is the number of items unless the function says otherwise.
Source: bear.md, sections 6 to 8; Wiland et al. 2024.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.intervals import of_share, standard_error, wilson
from kgprobe.metrics.ranking import reciprocal_rank
from kgprobe.tables import table
from kgprobe.tables.published import Published
from kgprobe.tables.resample import Interval
from kgprobe.tables.study import Study

#: Order of columns in `bear_models` when it is read by people.
MODEL_COLUMNS = (
    "score",
    "sem",
    "template 0",
    "template 1",
    "template 2",
    "macro",
    "macro, relations resampled",
    "1:1",
    "1:N",
    "first wins",
    "mrr",
    "difference to published",
)

Cells = list[dict[str, object]]
_model = partial(table.cell, "bear_models")


def models(studies: Sequence[Study], published: Published | None = None) -> pl.DataFrame:
    """`bear_models`: one row per probe, and the baselines `random` and `majority` of each set.

    score: mean over templates of the instance-weighted accuracy, paired bootstrap within relations;
    sem: over templates, divisor n - 1 (n: templates); template t: Wilson; macro: every relation
    equal, with the bootstrap over items, and with the one over relations (n: relations).
    `first wins` (lowest index among tied leaders) is printed where a tie occurred.
    """
    cells: Cells = []
    for study in studies:
        for position, (probe, answers) in enumerate(study.probes):
            paper = (
                published.score(probe, study.items.height, study.templates) if published else None
            )
            cells += _scores(study, position, probe.label, paper)
            cells += _groups(study, position, probe.label)
            if (answers["leaders"] > 1).any():
                first = 100 * study.hits(position, "first").mean()
                cells.append(_model(probe.label, "first wins", first, study.items.height))
        cells += _ranks(study) + _baselines(study, published)
    return table.build(cells)


def relations(studies: Sequence[Study]) -> pl.DataFrame:
    """`bear_relations`: row = relation, columns = score and template t of every probe, and of the
    benchmark: options, random, majority."""
    cells: Cells = []
    for study in studies:
        boot = study.resampled
        of_set = study.totals(study.options, 100 * study.random, 100 * study.majority)
        for place, name in enumerate(boot.relations):
            only, n = study.among({name: True}), int(boot.sizes[place])
            row = partial(table.cell, "bear_relations", name)
            for column, kind in enumerate(("options", "random", "majority")):
                cells.append(row(f"{kind} | {study.benchmark}", of_set.mean(column, only), n))
            for position, (probe, _) in enumerate(study.probes):
                interval = study.interval(position, only)
                cells.append(row(probe.label, 100 * boot.mean(position, only), n, interval))
        cells += _relation_templates(study)
    return table.build(cells)


def domains(studies: Sequence[Study]) -> pl.DataFrame | None:
    """`bear_domains`: row = domain or cardinality; None when no benchmark tells domains.

    A relation counts fully in each of its domains. Column `... | split` is the other reading, in
    which its weight is divided by the number of its domains.
    """
    cells: Cells = []
    for study in studies:
        known = study.domains
        for domain in sorted({d for names in known.values() for d in names}):
            full = study.among({r: domain in names for r, names in known.items()})
            if full.any():
                shares = np.array(
                    [1 / len(known.get(r) or [""]) for r in study.resampled.relations]
                )
                cells += _domain(study, domain, full, full * shares)
        for kind in ("1:1", "1:N") if known else ():
            full = study.among({r: c == kind for r, c in study.cardinality.items()})
            if full.any():
                cells += _domain(study, kind, full, None)
    return table.build(cells) if cells else None


def differences(studies: Sequence[Study]) -> pl.DataFrame | None:
    """`bear_differences`: score of one probe minus that of another, paired bootstrap.

    Every pair of a benchmark once; None when every benchmark has a single probe.
    """
    cells: Cells = []
    for study in studies:
        boot, labels = study.resampled, [probe.label for probe, _ in study.probes]
        for i, label in enumerate(labels):
            for j in range(i + 1, len(labels)):
                row = partial(table.cell, "bear_differences", f"{label} minus {labels[j]}")
                for column, weights in (("score", None), ("macro", boot.macro())):
                    value, found = boot.difference(i, j, weights)
                    interval = _percent(found) if found else None
                    cells.append(row(column, 100 * value, study.items.height, interval))
    return table.build(cells) if cells else None


def _ranks(study: Study) -> Cells:
    """Mean reciprocal rank of the correct option (0 to 1), expected under ties."""
    columns = []
    for position in range(len(study.probes)):
        best = study.hits(position, "above").astype(np.int64) + 1
        worst = best + study.hits(position, "tied").astype(np.int64)
        ranks = reciprocal_rank(best.ravel(), worst.ravel()).reshape(best.shape)
        columns.append(ranks.mean(axis=1))
    boot, n = study.resample(np.column_stack(columns)), study.items.height
    cells = []
    for position, (probe, _) in enumerate(study.probes):
        value = boot.mean(position)
        interval, _ = of_share(boot.interval(position), value * n, n)
        cells.append(_model(probe.label, "mrr", value, n, interval))
    return cells


def _scores(study: Study, position: int, label: str, paper: float | None) -> Cells:
    boot, hits, n = study.resampled, study.hits(position), study.items.height
    score = 100 * boot.mean(position)
    cells = [_model(label, "score", score, n, study.interval(position), paper)]
    per_template = 100 * hits.mean(axis=0)
    if len(per_template) > 1:
        error = standard_error(per_template.tolist())
        cells.append(_model(label, "sem", error, len(per_template)))
    for column, index in enumerate(study.templates):
        share = per_template[column]
        cells.append(_model(label, f"template {index}", share, n, wilson_percent(hits[:, column])))
    if paper is not None:
        low, high = study.interval(position)
        gap = (low - paper, high - paper)
        cells.append(_model(label, "difference to published", score - paper, n, gap))
    return cells


def _groups(study: Study, position: int, label: str) -> Cells:
    boot = study.resampled
    macro, even = 100 * boot.mean(position, boot.macro()), boot.macro()
    cells = [_model(label, "macro", macro, study.items.height, study.interval(position, even))]
    over = _percent(boot.over_relations(position))
    cells.append(_model(label, "macro, relations resampled", macro, len(boot.relations), over))
    for kind in ("1:1", "1:N"):
        inside = study.among({r: c == kind for r, c in study.cardinality.items()})
        if inside.any():
            n, interval = int(inside @ boot.sizes), study.interval(position, inside)
            cells.append(_model(label, kind, 100 * boot.mean(position, inside), n, interval))
    return cells


def _baselines(study: Study, published: Published | None) -> Cells:
    """Random and majority, exact on the set (no interval)."""
    chance = study.totals(study.random, study.majority)
    cells: Cells = []
    for column, name in enumerate(("random", "majority")):
        label, n = f"{name} | {study.benchmark}", study.items.height
        paper = published.baseline(study.benchmark, n) if published and name == "random" else None
        score = 100 * chance.mean(column)
        cells.append(_model(label, "score", score, n, published=paper))
        cells.append(_model(label, "macro", 100 * chance.mean(column, chance.macro()), n))
        for kind in ("1:1", "1:N"):
            inside = study.among({r: c == kind for r, c in study.cardinality.items()})
            if inside.any():
                share = 100 * chance.mean(column, inside)
                cells.append(_model(label, kind, share, int(inside @ chance.sizes)))
    return cells


def _relation_templates(study: Study) -> Cells:
    cells: Cells = []
    if len(study.templates) < 2:
        return cells
    owner = study.ordered["relation"].to_numpy()
    for position, (probe, _) in enumerate(study.probes):
        hits = study.hits(position)
        for name in study.resampled.relations:
            inside = hits[owner == name]
            for column, index in enumerate(study.templates):
                share, interval = inside[:, column].mean(), wilson_percent(inside[:, column])
                label = f"{probe.label} | template {index}"
                cells.append(
                    table.cell("bear_relations", name, label, 100 * share, len(inside), interval)
                )
    return cells


def _domain(
    study: Study, name: str, full: NDArray[np.float64], split: NDArray[np.float64] | None
) -> Cells:
    boot = study.resampled
    chance = study.totals(study.random)
    n, row = int(full @ boot.sizes), partial(table.cell, "bear_domains", name)
    cells = [row(f"random | {study.benchmark}", 100 * chance.mean(0, full), n)]
    for position, (probe, _) in enumerate(study.probes):
        interval = study.interval(position, full)
        cells.append(row(probe.label, 100 * boot.mean(position, full), n, interval))
        if split is not None:
            interval = study.interval(position, split)
            value = 100 * boot.mean(position, split)
            cells.append(row(f"{probe.label} | split", value, n, interval))
    return cells


def _percent(interval: Interval) -> Interval:
    return 100 * interval[0], 100 * interval[1]


def wilson_percent(hits: NDArray[np.float64]) -> Interval:
    """Wilson interval, in per cent, of the mean of expected hits."""
    # The sum of expected hits may lie a rounding error above n
    return _percent(wilson(min(float(hits.sum()), len(hits)), len(hits)))
