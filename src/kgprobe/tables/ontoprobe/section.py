"""OntoProbe's section of the report: its views of RESULTS in the paper's order, its figures, and
every point on which paper and code disagree."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import polars as pl

from kgprobe.benchmarks.ontoprobe.modes import MODES, SWITCHES, Switches, changed
from kgprobe.tables import aggregations
from kgprobe.tables.ontoprobe import figures, views
from kgprobe.tables.ontoprobe.values import AGGREGATIONS as SCORED
from kgprobe.tables.report import grid
from kgprobe.tables.report.grid import Grid, filled_in
from kgprobe.tables.report.section import Section
from kgprobe.tables.views import View, write_all

LEAD = (
    "Does a model store ontological knowledge, and can it reason with it? Five tasks ask for the "
    "type of an instance (TP), the superclass of a class (SCO), the superproperty of a property "
    "(SPO), and its domain (DM) and range (RG); six rules give premises and ask for the conclusion "
    "(Wu et al. 2023)."
)
ORACLE = (
    "The paper's Table 4 has the maximum over all configurations on the test rows, for every "
    "metric separately. We report one configuration chosen on the dev rows, one fixed in advance, "
    "and the oracle; only the oracle is compared with the printed values."
)
CHOICES = (
    "The questions of OntoProbe with their options, answered in text by a chat model, or with the "
    "most likely option by any other model (Wu et al. 2023, Tables 5 and 6). An answer that cannot "
    "be parsed is wrong and also counted separately."
)

#: where a switch of each stage takes effect
EFFECTS = {
    "questions": "in the questions",
    "answers": "in the models' answers",
    "tables": "when tables are made",
}


def section(
    results: pl.DataFrame,
    examples: Iterable[Mapping[str, object]],
    funnels: Mapping[str, pl.DataFrame],
    mode: str,
    switches: Switches,
    models: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Section:
    """Build the section from OntoProbe's RESULTS. The switch `select` determines which Table 4
    comes first, `average` which averages the figures show; `models`: by name."""

    def fill_views(*chosen: View) -> list[Grid]:
        return filled_in(grid.of_view(view, results) for view in chosen)

    order = ("oracle", "chosen", "fixed") if switches.select == "oracle" else tuple(views.CHOICES)
    grids = fill_views(views.SIZES, *map(views.table4, order))
    title = "Table 7: examples of the fixed configuration"
    grids.append(grid.records(title, examples, "+: right"))
    grids += fill_views(
        views.ABOVE_BASELINES, views.FORMS[0], *views.AVERAGES.values(), views.CALIBRATION,
        views.HELD_OUT, views.REASONING,
    )  # fmt: skip
    folded = fill_views(
        views.FIGURE5_MANUAL, views.CONFIGURATIONS, views.GROUPS, views.SEEDS, views.PAIRS,
        views.CUTS, views.TEMPLATES, *views.REDUCED, views.CONFIDENCE, *views.SLICES,
        *views.FORMS[1:],
    )  # fmt: skip
    title = "Modes: every point where paper and code leave a choice"
    folded.append(grid.records(title, points(switches)))
    steps = {"task": "relation", "step": "step", "kept": "rows_out"}
    for name, frame in funnels.items():
        rows = frame.sort("position").select(**steps).iter_rows(named=True)
        folded.append(grid.records(f"Construction of {name}", rows))
    chosen = ", ".join(f"{k}: {v}" for k, v in sorted(changed(switches).items()))
    notes = [f"Mode {mode}{'; ' + chosen if chosen else ''}.", ORACLE]
    notes += aggregations.notes(results, models, SCORED[0])
    picked = Section(
        "choices", "OntoProbe: multiple choice", CHOICES, [],
        fill_views(views.TABLE5, views.TABLE6),
        fill_views(views.ANSWERS, views.FRACTIONS),
    )  # fmt: skip
    return Section(
        "ontoprobe", "Ontological knowledge", LEAD, notes, filled_in(grids), filled_in(folded),
        figures.drawings(results, switches.average, models),
        [picked] if fill_views(views.TABLE5) else (),
    )  # fmt: skip


def write_texts(results: pl.DataFrame, folder: Path) -> None:
    """Write every nonempty view as tab-separated text next to the RESULTS, with four decimals."""
    every = [*views.ALL, *map(views.table4, views.CHOICES)]
    held = [replace(view, usual=4, digits={}) for view in every if view.of(results).rows]
    write_all(held, results, folder)


def points(values: Switches) -> list[dict[str, object]]:
    """Return every switch with its value in each mode and here; "assumed": not in the paper."""
    rows: list[dict[str, object]] = []
    for key, switch in sorted(SWITCHES.items(), key=lambda pair: (pair[1].point or 99, pair[0])):
        modes = {mode: str(getattr(switch, mode)) for mode in MODES}
        modes["paper"] += " (assumed)" * switch.assumed
        here = {"here": getattr(values, key), "takes effect": EFFECTS[switch.stage]}
        rows.append({"point": switch.point, "switch": key, **modes, **here})
    return rows
