"""Table 1 of the nine benchmarks beside the printed one, their funnels, and what thresholds do."""

from collections.abc import Mapping

import polars as pl

from kgprobe.tables import grid, table
from kgprobe.tables.attributes_published import BENCHMARKS, Published
from kgprobe.tables.attributes_published import size_notes as notes_of
from kgprobe.tables.attributes_tables import cell
from kgprobe.tables.grid import Cell, Grid

#: our column -> the printed one that it is the counterpart of
COLUMNS = {
    "triples": "triples",
    "patterns": "predicates",
    "entities": "entities",
    "triples per pattern": "triples_per_predicate",
    "predicates": None,
    "written": None,
    "by label": None,
    "without template": None,
    "examples": None,
}
BUILDS = {
    "structural": "all that the graph holds",
    "labelled": "with labels and templates",
    "unlabelled": "labels not required",
    "sampled": "probed here",
}


def sizes(frame: pl.DataFrame, published: Published) -> pl.DataFrame:
    """`kg_table1`: sizes of every build of every benchmark, the printed figures beside.

    `frame`: SIZES of all benchmarks. Row: benchmark | build. The printed column "predicates" counts
    patterns (predicates, pairs or combinations), as ours does; distinct predicates stand beside it.
    n: examples.
    """
    cells = []
    for m in frame.sort("benchmark", "build").iter_rows(named=True):
        name = f"{m['benchmark']} | {m['build']}"
        printed = published.sizes[m["benchmark"]]
        for column, other in COLUMNS.items():
            value = m[column.replace(" ", "_")]
            known = float(printed[other]) if other and m["build"] != "sampled" else None
            cells.append(cell("kg_table1", name, column, value, m["examples"], published=known))
    return table.build(cells)


def size_grid(frame: pl.DataFrame, published: Published, thresholds: str) -> Grid:
    """Table 1 for reading: what the graph holds, what is probed, and what the paper prints."""
    cells = table.lookup(frame)
    rows = []
    for benchmark in BENCHMARKS:
        for build, words in BUILDS.items():
            name = f"{benchmark} | {build}"
            if (name, "triples") not in cells:
                continue
            values = [_number(cells[name, column]["value"]) for column in COLUMNS]
            rows.append([Cell(benchmark, words, benchmark), *values])
        printed = published.sizes[benchmark]
        values = [
            _number(float(printed[other])) if other else grid.text("") for other in COLUMNS.values()
        ]
        hint = notes_of(published).get(benchmark, "")
        rows.append([Cell(benchmark, "the paper", benchmark, hint), *values])
    title = f"Table 1: sizes (thresholds: {thresholds})"
    caption = (
        "The paper's sizes are those of the whole T-REx; oddities of its columns on hover. Patterns"
        " are predicates, pairs or combinations; the paper heads that column “predicates”. Of our "
        "predicates so many have a written template, so many the generic wording of their label "
        "(kind “label” among the wordings), so many none: these are dropped from what is probed."
    )
    heads = ["benchmark", *COLUMNS]
    return Grid(title, heads, rows, frozenset(range(1, len(heads))), caption)


def funnel_grid(frame: pl.DataFrame) -> Grid:
    """Every step of every construction: kept, dropped, why."""
    rows = []
    for m in _in_order(frame, "position").iter_rows(named=True):
        row = {"benchmark": m["benchmark"], "step": m["step"], "kept": m["kept"]}
        rows.append({**row, "dropped": m["dropped"], "why, or what": m["reason"]})
    return grid.records("Construction of the nine, step by step", rows)


def sensitivity_grid(frame: pl.DataFrame) -> Grid:
    """What the sizes become where the paper leaves a threshold open."""
    rows = []
    for m in _in_order(frame, "setting").iter_rows(named=True):
        row = {"benchmark": m["benchmark"], "setting": m["setting"]}
        row["in use"] = "yes" if m["default"] else ""
        rows.append(
            {**row, "patterns": m["patterns"], "examples": m["examples"], "triples": m["triples"]}
        )
    caption = "Structural build: labels not required, nothing sampled but by the caps."
    return grid.records("Thresholds that the paper leaves open", rows, caption)


def _in_order(frame: pl.DataFrame, then: str) -> pl.DataFrame:
    """By benchmark as in the paper's Table 2."""
    place: Mapping[str, int] = {name: i for i, name in enumerate(BENCHMARKS)}
    order = pl.col("benchmark").replace_strict(place, return_dtype=pl.Int32)
    return frame.sort(order, then)


def _number(value: float) -> Cell:
    return grid.text(int(value)) if float(value).is_integer() else Cell(f"{value:,.2f}", sort=value)
