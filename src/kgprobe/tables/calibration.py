"""Calibration: what a probe says of facts whose presence in the model is known.

Control models were taught a known half of the facts. A probe works when it ranks the taught facts
first and the untaught near chance. Real models stand beside them as a reference: they know neither
half by design, so their two halves should not differ.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.ranking import auc
from kgprobe.tables import table
from kgprobe.tables.bear import wilson_percent
from kgprobe.tables.resample import Interval, by_relation
from kgprobe.tables.study import Study

#: Order of columns when read by people.
COLUMNS = ("taught", "untaught", "chance", "limit for untaught", "AUC")

#: What a control model must reach: taught facts first in 90 % of their items, untaught ones in no
#: more than twice the chance rate plus 5 points.
TAUGHT_AT_LEAST, CHANCE_TIMES, CHANCE_PLUS = 90.0, 2.0, 5.0


def calibration(studies: Sequence[Study], taught: pl.DataFrame) -> pl.DataFrame | None:
    """`calibration`: one row per probe of every benchmark that holds taught facts.

    taught, untaught: accuracy in per cent, mean over templates, bootstrap within relations; chance:
    of a random guess on the untaught items; limit for untaught: the highest accuracy on them that
    is still called calibrated; AUC (0 to 1): probability that a taught item has a larger margin
    than an untaught one (margin: score of the correct option minus that of the best wrong one, in
    nats, mean over templates), with Newcombe's interval. n: items.
    `taught`: frame TAUGHT. None when no benchmark holds both kinds of facts.
    """
    cells = []
    for study in studies:
        known = status(study, taught)
        if not (known["taught"].any() and not known["taught"].all()):
            continue
        part = {True: _where(study, known, True), False: _where(study, known, False)}
        for position, (probe, _) in enumerate(study.probes):
            cells += _row(study, position, probe.label, part)
    return table.build(cells) if cells else None


def status(study: Study, taught: pl.DataFrame) -> pl.DataFrame:
    """item -> taught; items whose fact is in neither half (lifted answers) are left out.

    A fact's id is relation/subject/object; an item with several answers is left out, too.
    """
    options = study.candidates.select(candidates="set", answer="index", object="id")
    return (
        study.items.filter(pl.col("answers").list.len() == 1)
        .select(
            "item", "relation", "subject_id", "candidates", answer=pl.col("answers").list.first()
        )
        .join(options, on=["candidates", "answer"])
        .with_columns(fact=pl.concat_str("relation", "subject_id", "object", separator="/"))
        .join(taught.select("fact", "taught"), on="fact")
        .select("item", "taught")
        .sort("item")
    )


def verdict(frame: pl.DataFrame, row: str) -> bool | None:
    """Whether a probe meets the requirement on both halves; None when the row is not there."""
    values = dict(frame.filter(pl.col("row") == row).select("column", "value").iter_rows())
    if not values:
        return None
    return bool(
        values["taught"] >= TAUGHT_AT_LEAST and values["untaught"] <= values["limit for untaught"]
    )


def auc_interval(area: float, positives: int, negatives: int, level: float = 0.95) -> Interval:
    """Interval of an AUC from its value and the two sample sizes; sensible at 0 and 1, too.

    The bounds solve |area - t| = z * sd(t), where sd(t) is Hanley and McNeil's under exponential
    scores. Source: Newcombe 2006, "Confidence intervals for an effect size measure based on the
    Mann-Whitney statistic", part 2, method 5.
    """
    if positives < 1 or negatives < 1 or not 0 <= area <= 1:
        raise ValueError(f"no interval for an AUC of {area} from {positives} and {negatives}")
    z = NormalDist().inv_cdf(0.5 + level / 2)
    extra = (positives + negatives) / 2 - 1

    def deviation(t: float) -> float:
        spread = 1 + extra * ((1 - t) / (2 - t) + t / (1 + t))
        return math.sqrt(t * (1 - t) * spread / (positives * negatives))

    def bound(end: float) -> float:
        inner, outer = area, end
        for _ in range(60):
            middle = (inner + outer) / 2
            if abs(area - middle) <= z * deviation(middle):
                inner = middle
            else:
                outer = middle
        return (inner + outer) / 2

    return bound(0.0), bound(1.0)


def _where(study: Study, known: pl.DataFrame, taught: bool) -> NDArray[np.bool_]:
    """Which items, in the study's order, are (not) taught."""
    members = known.filter(pl.col("taught") == taught)["item"].to_list()
    return study.ordered["item"].is_in(members).to_numpy()


def _row(
    study: Study, position: int, label: str, part: dict[bool, NDArray[np.bool_]]
) -> list[dict[str, object]]:
    hits = study.hits(position).mean(axis=1)
    margin = study.hits(position, "margin").mean(axis=1)
    cells = []
    for taught, name in ((True, "taught"), (False, "untaught")):
        value, interval = _accuracy(study, hits, part[taught])
        cells.append(_cell(label, name, 100 * value, int(part[taught].sum()), interval))
    chance, untaught = 100 * study.random[part[False]].mean(), int(part[False].sum())
    cells.append(_cell(label, "chance", chance, untaught))
    limit = CHANCE_TIMES * chance + CHANCE_PLUS
    cells.append(_cell(label, "limit for untaught", limit, untaught))
    area = auc(margin[part[True]], margin[part[False]])
    counts = int(part[True].sum()), untaught
    cells.append(_cell(label, "AUC", area, sum(counts), auc_interval(area, *counts)))
    return cells


def _accuracy(
    study: Study, hits: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[float, Interval]:
    """Mean over the chosen items, and its interval in per cent, chosen as in `Study.interval`."""
    inside = hits[chosen]
    if len(study.templates) == 1 or inside.min() == inside.max():
        return float(inside.mean()), wilson_percent(inside)
    owners = study.ordered["relation"].filter(pl.Series(chosen)).to_list()
    boot = by_relation(inside[:, None], owners, study.resamples, study.seed)
    low, high = boot.interval(0)
    return boot.mean(0), (100 * low, 100 * high)


def _cell(
    row: str, column: str, value: float, n: int, interval: Interval | None = None
) -> dict[str, object]:
    return table.cell("calibration", row, column, value, n, interval, paper="kgprobe")
