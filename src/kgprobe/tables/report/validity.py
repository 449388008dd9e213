"""Validity of a probe: its results on facts whose presence in the model is known.

Control models were trained on a known half of the facts. A probe works if it ranks the trained-on
facts first and the held-out ones near chance. Real models are given as a reference: by design they
were trained on neither, so the two should not differ.

Every paper computes these numbers with `estimates`; the section is one view of all papers' RESULTS.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import polars as pl

from kgprobe.metrics.intervals import Interval
from kgprobe.tables.report import grid
from kgprobe.tables.report.section import Section
from kgprobe.tables.results import Number
from kgprobe.tables.views import View

#: order of the printed columns
COLUMNS = ("trained-on", "held-out", "chance for held-out", "limit for held-out", "AUC")
#: slice of held-out facts whose names reveal the answer: a separate stratum
WORDS = "words shared"
#: the dimensions of the probe that is checked
PROBE = ["paper", "benchmark", "group", "model", "prompt", "method", "scoring"]

#: Requirement for a control model: trained-on facts ranked first in 95 % of their items, held-out
#: ones in at most twice the chance rate plus 5 points, and never 15 points above it; fewer facts
#: than the last number show little.
TRAINED_ON_AT_LEAST, CHANCE_TIMES, CHANCE_PLUS, MOST_ABOVE, FEWEST = 95.0, 2.0, 5.0, 15.0, 80
#: means over templates have errors in their last bits, which decide nothing
ROUNDING = 1e-9
REQUIREMENT = (
    "The requirement (trained-on facts: at least 95 % right; held-out facts: at most twice chance "
    "plus 5 points, and at most 15 points above chance) is met by"
)
TITLE = "Validity: do the probes measure knowledge?"
LEAD = (
    "Control models were trained on a known half of the facts. A valid probe ranks their "
    "trained-on facts first and is near chance on the held-out ones. Their accuracy says how well "
    "the probe measures, not how much real models know. This page lists every probe of every paper "
    "that has numbers for trained-on and held-out facts, with one requirement for all; the numbers "
    "of probes that fail it are marked wherever they are printed."
)
#: (paper, method) -> why it fails if it does, as far as the answers show
WHY: Mapping[tuple[str, str], str] = {
    ("ontoprobe", "cloze"): (
        "OntoProbe scores candidates of several tokens in one pass and averages over their tokens: "
        "each of the 8 missed superclasses ranks second, behind a name that is its first token."
    ),
    ("ontoprobe", "soft"): (
        "Soft prompts start at random and are trained on eight rows per task, which they overfit: "
        "with earlier weights, 100 epochs instead of 12 made it worse (types 55 % instead of 60 %, "
        "superclasses 66 % instead of 85 %)."
    ),
    ("ontoprobe", "sentence"): (
        "OntoProbe averages over the answer's tokens, so that “sport” is ahead of “sports team”: "
        "7 of 90 trained-on superclasses are lost that way. By the sum, all 90 rank first."
    ),
    ("ontoprobe", "choice"): (
        "The seq2seq model finds the letters of 97 % of trained-on statements in the three "
        "wordings that it was trained on, but in OntoProbe's, which is held out, fewer of the "
        "superclasses."
    ),
    ("attributes", "fill"): (
        "Masked models fill all masks of an answer at once, so parts of two answers can mix "
        "(“United Unitedates of America”)."
    ),
    ("autoprompt", "predict"): (
        "The manual prompt finds all trained-on facts of the masked model. The searched prompts "
        "are sentences that it was not trained on, and lose some of them."
    ),
}


def limit(chance: float) -> float:
    """Return the highest accuracy on held-out facts of a valid probe, in per cent."""
    return min(CHANCE_TIMES * chance + CHANCE_PLUS, chance + MOST_ABOVE)


def estimates(
    of: Number,
    trained: Mapping[str, Any],
    held_out: Mapping[str, Any],
    chance: float,
    area: float | None = None,
    is_control: bool = False,
) -> list[Number]:
    """Return a probe's numbers on trained-on and held-out facts, in the order of COLUMNS, and
    whether it is `valid`.

    `of` has the probe's dimensions; `trained`, `held_out`: value (per cent), n and interval. Only
    control models have a verdict: they were trained on one half. `chance`: of a random guess on the
    held-out items; `area`: the AUC, with Newcombe's interval.
    """
    both = trained["n"] + held_out["n"]
    rows = [
        of.but(metric="trained-on", **trained),
        of.but(metric="held-out", **held_out),
        of.but(metric="chance for held-out", value=chance, n=held_out["n"]),
        of.but(metric="limit for held-out", value=limit(chance), n=held_out["n"]),
    ]
    if area is not None:
        interval = auc_interval(area, trained["n"], held_out["n"])
        rows.append(of.but(metric="AUC", value=area, n=both, interval=interval))
    if is_control:
        least, most = TRAINED_ON_AT_LEAST - ROUNDING, limit(chance) + ROUNDING
        is_met = trained["value"] >= least and held_out["value"] <= most
        rows.append(of.but(metric="valid", value=is_met, n=both))
    return rows


VIEW = View(
    "validity",
    "Control probes of all papers",
    where={"metric": ["valid", *COLUMNS], "slice": ["", WORDS], "aggregation": [""]},
    rows=["model", "paper", "benchmark", "group", "method", "scoring", "prompt"],
    columns=["metric", "slice"],
    words={("metric", name): f"{name}, %" for name in COLUMNS[:4]}
    | {("metric", "valid"): "requirement"},
    heads={"group": "relation or task"},
    digits={"AUC": 3},
)


def probes(results: pl.DataFrame) -> pl.DataFrame:
    """Select COLUMNS and verdict of the control probes that have a verdict."""
    verdicts = results.filter(metric="valid")
    is_shown = pl.col("metric").is_in([*COLUMNS, "valid"])
    rows = results.filter(is_shown, pl.col("slice").is_in(["", WORDS]))
    return rows.join(verdicts.select(PROBE), on=PROBE, how="semi")


def with_shipped(results: pl.DataFrame, shipped: pl.DataFrame) -> pl.DataFrame:
    """Add to the RESULTS of a run those of control probes that it did not ask but that were
    measured earlier (resources/measured/validity.tsv)."""
    others = shipped.join(results.select(PROBE), on=PROBE, how="anti")
    return pl.concat([results, probes(others)])


def section(
    results: pl.DataFrame,
    models: Mapping[str, Mapping[str, str]],
    source: str = "",
    own: pl.DataFrame | None = None,
) -> Section | None:
    """Build the section on control probes of every paper, with verdicts; None without any.
    `results`: of all papers; `models`: by name, for marking controls; `source`: origin of numbers
    that the run did not measure; `own`: those that it did, which alone can be traced (default:
    all)."""
    verdicts = results.filter(metric="valid")
    probes = verdicts.join(results.filter(metric="trained-on"), on=PROBE, how="semi")
    if not probes.height:
        return None
    rows = results.join(probes.select(PROBE), on=PROBE, how="semi")
    failed = probes.filter(value=0.0)
    measured = set((results if own is None else own).select(PROBE).rows())

    def as_traced(cell: grid.Cell, row: Mapping[str, Any]) -> grid.Cell:
        return cell if tuple(row[d] for d in PROBE) in measured else replace(cell, trace="")

    shown = grid.of_view(VIEW, rows, names=grid.models(models), also=as_traced)
    few = probes.filter(pl.col("n") < FEWEST, value=1.0).height
    verdict = f"{REQUIREMENT} {probes.height - failed.height} of {probes.height} control probes"
    verdict += f" ({few} of them on fewer than {FEWEST} facts)." if few else "."
    grids = [_list_failed(failed, probes), shown] if failed.height else [shown]
    lead, is_met = f"{LEAD} {source}".rstrip(), not failed.height
    return Section("validity", TITLE, lead, grids=grids, verdict=verdict, is_met=is_met)


def _list_failed(failed: pl.DataFrame, probes: pl.DataFrame) -> grid.Grid:
    """Tabulate by method how many control probes fail, which, and why."""
    by = ["paper", "method", "scoring"]
    rows = []
    for (paper, method, scoring), group in failed.group_by(by, maintain_order=True):
        names = group.select(d for d in PROBE if d not in by).rows()
        which = "; ".join(", ".join(filter(None, name)) for name in names)
        of = probes.filter(paper=paper, method=method, scoring=scoring).height
        head = grid.Cell(", ".join(filter(None, map(str, (paper, method, scoring)))))
        why = WHY.get((str(paper), str(method)), "–")
        rows.append([head, grid.Cell(f"{group.height} of {of}"), grid.Cell(why, small=which)])
    heads = ["paper, method, scoring", "failed", "why, and which"]
    return grid.Grid("Control probes that fail the requirement", heads, rows)


def auc_interval(area: float, positives: int, negatives: int) -> Interval:
    """95 % interval of an AUC from its value and the two sample sizes, also valid at 0 and 1.

    The bounds solve |area - t| = z * sd(t), where sd(t) is Hanley and McNeil's under exponential
    scores. Source: Newcombe 2006, "Confidence intervals for an effect size measure based on the
    Mann-Whitney statistic", part 2, method 5.
    """
    if positives < 1 or negatives < 1 or not 0 <= area <= 1:
        raise ValueError(f"no interval for an AUC of {area} from {positives} and {negatives}")
    z = NormalDist().inv_cdf(0.975)
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

    return Interval(bound(0.0), bound(1.0), "newcombe")
