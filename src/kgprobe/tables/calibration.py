"""Calibration: what a probe says of facts whose presence in the model is known.

Control models were taught a known half of the facts. A probe works when it ranks the taught facts
first and the untaught near chance. Real models stand beside them as a reference: they know neither
half by design, so their two halves should not differ.

Every paper has a calibration table of its own (TABLES) whose rows begin with the model; `cells`
writes the figures that the requirement is about, `limit` and `verdict` are the requirement.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.ranking import auc
from kgprobe.tables import grid, marks, table
from kgprobe.tables.answers import Probe
from kgprobe.tables.bear import wilson_percent
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.grid import Grid
from kgprobe.tables.resample import Interval, by_relation
from kgprobe.tables.study import Study

#: Order of columns when read by people.
COLUMNS = ("taught", "untaught", "chance", "limit for untaught", "AUC")

#: What a control model must reach: taught facts first in 90 % of their items, untaught ones in no
#: more than twice the chance rate plus 5 points.
TAUGHT_AT_LEAST, CHANCE_TIMES, CHANCE_PLUS = 90.0, 2.0, 5.0
REQUIREMENT = (
    "The requirement (taught facts first in at least 90 % of their items, untaught in no more than "
    "twice the chance rate plus 5 points) is met by"
)
#: a paper's calibration table -> its paper
TABLES = {
    "calibration": "BEAR",
    "ontoprobe_calibration": "OntoProbe",
    "kg_calibration": "nine attributes",
    "autoprompt_calibration": "AutoPrompt",
}
TITLE = "Calibration: can the probes be believed?"
LEAD = (
    "Control models were trained here on a known half of the facts, so what they know is known. A "
    "probe that works ranks the taught facts first and the untaught near chance. They are controls "
    "and nothing else: their accuracy says how well the instrument measures, not how much a model "
    "knows. Every probe of "
    "every paper that has figures of both halves stands here, under one requirement; those outside "
    "it are marked at every number that they print."
)
#: per cent, items, interval
Share = tuple[float, int, Interval | None]


def calibration(studies: Sequence[Study], taught: pl.DataFrame) -> pl.DataFrame | None:
    """`calibration`: one row per probe of every benchmark that holds taught facts.

    taught, untaught: accuracy in per cent, mean over templates, bootstrap within relations; chance:
    of a random guess on the untaught items; limit for untaught: the highest accuracy on them that
    is still called calibrated; AUC (0 to 1): probability that a taught item has a larger margin
    than an untaught one (margin: score of the correct option minus that of the best wrong one, in
    nats, mean over templates), with Newcombe's interval. n: items.
    `taught`: frame TAUGHT. None when no benchmark holds both kinds of facts.
    """
    made: list[dict[str, object]] = []
    for study in studies:
        known = status(study, taught)
        if not (known["taught"].any() and not known["taught"].all()):
            continue
        part = {True: _where(study, known, True), False: _where(study, known, False)}
        for position, (probe, _) in enumerate(study.probes):
            made += _row(study, position, probe.label, part)
    return table.build(made) if made else None


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


def limit(chance: float) -> float:
    """The highest accuracy on untaught facts that is still called calibrated; per cent."""
    return CHANCE_TIMES * chance + CHANCE_PLUS


def cells(
    name: str,
    row: str,
    taught: Share,
    untaught: Share,
    chance: float,
    area: float | None = None,
    paper: str = "kgprobe",
) -> list[dict[str, object]]:
    """What a calibration table says of one probe, in the order of COLUMNS; per cent.

    `chance`: of a random guess on the untaught items; `area`: the AUC, with Newcombe's interval.
    """
    found: list[tuple[str, float, int, Interval | None]] = [
        ("taught", *taught),
        ("untaught", *untaught),
        ("chance", chance, untaught[1], None),
        ("limit for untaught", limit(chance), untaught[1], None),
    ]
    if area is not None:
        counts = taught[1], untaught[1]
        found.append(("AUC", area, sum(counts), auc_interval(area, *counts)))
    return [
        table.cell(name, row, column, value, n, interval, paper=paper)
        for column, value, n, interval in found
    ]


def verdict(frame: pl.DataFrame, row: str) -> bool | None:
    """Whether a probe meets the requirement on both halves; None when the row is not there."""
    values = dict(frame.filter(pl.col("row") == row).select("column", "value").iter_rows())
    if not values:
        return None
    return bool(
        values["taught"] >= TAUGHT_AT_LEAST and values["untaught"] <= values["limit for untaught"]
    )


def outside(frame: pl.DataFrame | None) -> list[str]:
    """The rows of a calibration table that do not meet the requirement, in its order."""
    rows = [] if frame is None else list(dict.fromkeys(frame["row"]))
    return [row for row in rows if frame is not None and not verdict(frame, row)]


def marked(frame: pl.DataFrame, rows: Container[str]) -> pl.DataFrame:
    """A calibration table with the mark behind the model, the first part, of the named rows."""
    shown = {
        row: row.replace(model, model + marks.OUTSIDE, 1)
        for row in dict.fromkeys(frame["row"])
        for model in [row.split(" | ")[0].removesuffix(" (control)")]
        if row in rows
    }
    return frame.with_columns(pl.col("row").replace(shown))


def signed(probes: Sequence[Probe], frame: pl.DataFrame | None) -> list[Probe]:
    """The probes with the mark behind the model of those that have it in a marked BEAR table."""
    rows = set() if frame is None else set(frame["row"])
    other = [replace(p, model=p.model + marks.OUTSIDE) for p in probes]
    return [q if q.label in rows else p for p, q in zip(probes, other, strict=True)]


def chapter(tables: Mapping[str, pl.DataFrame], controls: Container[str]) -> Chapter | None:
    """The calibration probes of every paper with their verdicts, counted; None without any.

    `tables`: TABLE frames by name; `controls`: names of the control models, whose rows count.
    """
    rows, failed = [], []
    for paper, row, found, is_met in _probes(tables, controls):
        model, *rest = marks.bare(row).split(" | ")
        failed += [] if is_met else [f"{paper}: {marks.bare(row)}"]
        sign = "" if is_met else marks.OUTSIDE
        named = grid.text(model.removesuffix(" (control)") + sign)
        numbers = [grid.measured(found.get(c), 3 if c == "AUC" else 1) for c in COLUMNS]
        sizes = [grid.text(found[c]["n"]) for c in COLUMNS[:2]]
        told = grid.text("met" if is_met else "not met")
        rows.append([named, grid.text(paper), grid.text(", ".join(rest)), *numbers, *sizes, told])
    if not rows:
        return None
    heads = ["model", "paper", "asked", "taught, %", "untaught, %", "chance, %"]
    heads += ["limit for untaught, %", "AUC", "taught items", "untaught items", "requirement"]
    shown = Grid("Calibration probes of all papers", heads, rows, frozenset(range(3, 10)))
    verdict = f"{REQUIREMENT} {len(rows) - len(failed)} of {len(rows)} control probes"
    verdict += f"; not by {'; '.join(failed)}." if failed else "."
    return Chapter("calibration", TITLE, LEAD, grids=[shown], verdict=verdict, is_met=not failed)


def _probes(
    tables: Mapping[str, pl.DataFrame], controls: Container[str]
) -> Iterator[tuple[str, str, Mapping[str, Mapping[str, object]], bool]]:
    """(paper, row, column -> cell, whether it meets the requirement) of the control models."""
    for name, paper in TABLES.items():
        if name not in tables:
            continue
        known = table.lookup(tables[name])
        for row in dict.fromkeys(row for row, _ in known):
            model = marks.bare(row).split(" | ")[0].removesuffix(" (control)")
            if model in controls:
                found = {column: cell for (r, column), cell in known.items() if r == row}
                yield paper, row, found, bool(verdict(tables[name], row))


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
    shares = {}
    for taught in (True, False):
        value, interval = _accuracy(study, hits, part[taught])
        shares[taught] = 100 * value, int(part[taught].sum()), interval
    chance = 100 * float(study.random[part[False]].mean())
    area = auc(margin[part[True]], margin[part[False]])
    return cells("calibration", label, shares[True], shares[False], chance, area)


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
