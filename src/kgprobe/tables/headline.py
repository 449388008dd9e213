"""The headline: each paper's principal number, one row per probe, as a TABLE and as text.

    python -m kgprobe.tables.headline results/tables/headline.parquet results/report/index.html

`bear_models.parquet` in place of the first works, too.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.tables import marks, table
from kgprobe.tables.attributes_baselines import METHOD as BASELINE
from kgprobe.tables.attributes_published import BENCHMARKS
from kgprobe.tables.attributes_tables import MEAN, NAMES
from kgprobe.tables.autoprompt import FACTS
from kgprobe.tables.autoprompt_published import CONTEXTS

Tables = Mapping[str, pl.DataFrame]
Cells = Mapping[tuple[str, str], Mapping[str, Any]]
#: Columns of BEAR, in the order of reading; the last three where a calibration exists.
COLUMNS = ("accuracy", "chance", "sem", "taught", "untaught", "AUC")
BASELINES = ("random", "majority")
TASKS = ("TP", "SCO", "SPO", "DM", "RG")
#: what a column of fractions ends with
ABOVE, BELOW = ", numerator", ", denominator"
#: what the second part of a row of multiple choice ends with
CHOICE = ", multiple choice"
#: autoprompt's table -> its column of the principal number -> benchmark, and what is measured
AUTOPROMPT = {
    "autoprompt_table1": {"test": ("auto_sst2", "accuracy"), "dev": ("auto_sst2", "dev accuracy")},
    "autoprompt_table2": {
        "standard": ("auto_sick", "accuracy"),
        "3-way": ("auto_sick_3way", "accuracy"),
        "2-way": ("auto_sick_2way", "accuracy"),
    },
    "autoprompt_table4": {f"{head} P@1": (name, "P@1") for name, (head, _) in FACTS.items()},
    "autoprompt_table5": {head: (name, "P@1") for name, head in CONTEXTS.items()},
}
#: whose number it is (column `paper`) -> what its blocks are headed with; in this order
WORDS = {
    "kgprobe": "accuracy in % with its 95 % interval",
    "ontoprobe": "right at rank 1 in %, one configuration",
    "kg": "metric @1 in %, numerator / denominator",
    "autoprompt": "right in % with its 95 % interval; facts: mean over relations",
}
Row = dict[str, object]


@dataclass(frozen=True)
class Block:
    """Rows of one paper and benchmark: labels and columns in the order in which they are read."""

    paper: str
    name: str
    labels: Sequence[str]
    columns: Sequence[str]
    cells: Cells

    @property
    def title(self) -> str:
        """What it holds, in words."""
        if self.name.endswith(CHOICE):
            return "right answers in %"
        return WORDS[self.paper]


def build(tables: Tables) -> pl.DataFrame:
    """`headline` from the tables of all papers that were asked, by name.

    BEAR (`bear_models`, `calibration`): accuracy with its published figure, chance of its
    benchmark, SEM over templates, accuracy on taught and untaught facts, and AUC. OntoProbe
    (`ontoprobe_memorising`, `ontoprobe_table5`): R@1 of the chosen configuration, and accuracy of
    multiple choice, by task. Attributes (`kg_table2`): the metrics @1, best prompt, with their
    fractions. AutoPrompt: P@1 or accuracy of every prompt; where it was only swept, the dev
    accuracy with the most examples, and the best of the grid. Rows are `model | benchmark | ...`.
    """
    rows: list[Row] = []
    if "bear_models" in tables:
        rows += _bear(tables["bear_models"], tables.get("calibration"))
    if "ontoprobe_memorising" in tables:
        rows += _memorising(tables["ontoprobe_memorising"])
    if "ontoprobe_table5" in tables:
        rows += _choices(tables["ontoprobe_table5"])
    if "kg_table2" in tables:
        rows += _attributes(tables["kg_table2"])
    rows += _autoprompt(tables)
    return table.build(rows)


def _bear(models: pl.DataFrame, calibration: pl.DataFrame | None) -> Iterator[Row]:
    cells, cell = table.lookup(models), partial(table.cell, paper="kgprobe")
    calibrated = table.lookup(calibration) if calibration is not None else {}
    for (label, column), found in cells.items():
        if column != "score" or label.split(" | ")[0] in BASELINES:
            continue
        row = partial(cell, "headline", label)
        chance = cells[f"random | {label.split(' | ')[1]}", "score"]
        interval = (found["low"], found["high"])
        yield row("accuracy", found["value"], found["n"], interval, found["published"])
        yield row("chance", chance["value"], chance["n"], None, chance["published"])
        if error := cells.get((label, "sem")):
            yield row("sem", error["value"], error["n"])
        for name in ("taught", "untaught", "AUC"):
            if known := calibrated.get((label, name)):
                interval = (known["low"], known["high"])
                yield row(name, known["value"], known["n"], interval)


def _memorising(frame: pl.DataFrame) -> Iterator[Row]:
    """R@1 of the configuration that the dev rows chose; without dev rows, of the fixed one."""
    cells = table.lookup(frame)
    for (row, column), found in cells.items():
        model, benchmark, task, kind, way = row.split(" | ")
        is_chosen = (" | ".join([model, benchmark, task, kind, "chosen"]), column) in cells
        if column == "R@1" and way == ("chosen" if is_chosen else "fixed"):
            words = "chosen on dev" if is_chosen else "fixed"
            label = f"{model.removesuffix(' (control)')} | {benchmark} | {kind}, {words}"
            yield _copied("ontoprobe", label, task, found)


def _choices(frame: pl.DataFrame) -> Iterator[Row]:
    for (row, task), found in table.lookup(frame).items():
        model, benchmark, way, *rest = row.split(" | ")
        words = ", ".join([way, *rest])
        yield _copied("ontoprobe", f"{model} | {benchmark}{CHOICE} | {words}", task, found)


def _attributes(frame: pl.DataFrame) -> Iterator[Row]:
    """The best prompt at 1; an undefined value has no cell, its numerator and denominator have."""
    for (row, column), found in table.lookup(frame).items():
        at, model, method, *pooling = row.split(" | ")
        counts = column.endswith((", undefined", ", missing"))
        if at == "@1" and method != BASELINE and pooling == [NAMES["best"]] and not counts:
            label = f"{model} | attributes | {method}, {NAMES['best']}"
            yield _copied("kg", label, column, found)


def _autoprompt(tables: Tables) -> Iterator[Row]:
    for name, columns in AUTOPROMPT.items():
        known = table.lookup(tables[name]) if name in tables else {}
        for (row, column), found in known.items():
            if column in columns:
                model, prompt = row.split(" | ")
                benchmark, measure = columns[column]
                yield _copied("autoprompt", f"{model} | {benchmark} | {prompt}", measure, found)
    if "autoprompt_figure2" in tables:
        yield from _low_data(table.lookup(tables["autoprompt_figure2"]))
    if "autoprompt_figure3" in tables:
        yield from _grid(table.lookup(tables["autoprompt_figure3"]))


def _low_data(cells: Cells) -> Iterator[Row]:
    """The mean over subsets of most examples; its bounds are subsets, no interval."""
    for name in dict.fromkeys(row for row, _ in cells):
        size = max(int(column) for row, column in cells if row == name)
        benchmark, model, method = name.split(" | ")
        label = f"{model} | {benchmark} | {method}, {size} examples"
        found = {**cells[name, str(size)], "low": None}
        yield _copied("autoprompt", label, "dev accuracy", found)


def _grid(cells: Cells) -> Iterator[Row]:
    """The best point of a grid: chosen on the rows that it is measured on, so without interval."""
    for name in dict.fromkeys(row for row, _ in cells):
        best = max((c for (row, _), c in cells.items() if row == name), key=lambda c: c["value"])
        benchmark, model, k = name.split(" | ")
        label = f"{model} | {benchmark} | best of the grid (oracle), {k}"
        yield _copied("autoprompt", label, "dev accuracy", {**best, "low": None})


def _copied(paper: str, label: str, column: str, found: Mapping[str, Any]) -> Row:
    """A number of another table as a row of the headline."""
    interval = None if found["low"] is None else (found["low"], found["high"])
    value, n, printed = found["value"], found["n"], found["published"]
    return table.cell("headline", label, column, value, n, interval, printed, paper)


def blocks(frame: pl.DataFrame) -> list[Block]:
    """The headline in the order of reading: by paper, then by benchmark."""
    order = [*COLUMNS, *TASKS, *BENCHMARKS, MEAN, "P@1", "dev accuracy"]
    made = []
    for paper in WORDS:
        cells = table.lookup(frame.filter(pl.col("paper") == paper))
        labels: dict[str, list[str]] = {}
        for label in dict.fromkeys(row for row, _ in cells):
            labels.setdefault(label.split(" | ")[1], []).append(label)
        for name, members in labels.items() if paper == "kgprobe" else sorted(labels.items()):
            # an undefined metric is known by its denominator alone
            asked = {c.removesuffix(BELOW) for row, c in cells if row in members}
            made.append(Block(paper, name, members, [c for c in order if c in asked], cells))
    return made


def text(frame: pl.DataFrame) -> str:
    """The headline as aligned text, a block per paper and benchmark."""
    lines = []
    for block in blocks(frame):
        is_bear, first = block.paper == "kgprobe", block.columns[0]
        n = [block.cells[row, first]["n"] for row in block.labels if (row, first) in block.cells]
        items = f"{n[0]:,} items; " if is_bear else ""
        printed = is_bear and any(
            block.cells[label, first]["published"] is not None for label in block.labels
        )
        head = ["model, method, BOS" if is_bear else "model, method", *block.columns]
        body = [_row(block, label, printed) for label in block.labels]
        lines += [f"{block.name}: {items}{block.title}", ""]
        lines += [*_aligned([[*head, *(["published"] if printed else [])], *body]), ""]
    lines += [line for note in marks.notes(frame["row"]) for line in (note, "")]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the headline of the parquet file given first and the path of the report, if given."""
    if not 1 <= len(arguments) <= 2:
        print("usage: python -m kgprobe.tables.headline TABLE.parquet [REPORT.html]")
        return 2
    try:
        frame = schema.read(arguments[0], schema.TABLE)
    except schema.ContractError as error:
        print(error, file=sys.stderr)
        return 1
    if "headline" not in frame["table"]:
        frame = build({"bear_models": frame})
    print(text(frame))
    if len(arguments) == 2:
        print(f"report: {arguments[1]}")
    return 0


def _row(block: Block, label: str, printed: bool) -> list[str]:
    parts = label.split(" | ")
    shown = [", ".join([parts[0], *parts[2:]])]
    shown += [_number(block, label, column) for column in block.columns]
    if printed:
        paper = block.cells[label, block.columns[0]]["published"]
        shown.append("-" if paper is None else f"{paper:.2f}")
    return shown


def _number(block: Block, label: str, column: str) -> str:
    """A number as printed, with its interval where a block has few columns, or its fraction."""
    cell, below = block.cells.get((label, column)), block.cells.get((label, column + BELOW))
    if cell is None:
        return "undef" if below else "-"
    digits = 3 if column == "AUC" else 1
    value = f"{cell['value']:.{digits}f}"
    if below:
        return f"{value} ({block.cells[label, column + ABOVE]['value']:g}/{below['value']:g})"
    if column in ("accuracy", "AUC", "P@1", "dev accuracy") and cell["low"] is not None:
        value += f" [{cell['low']:.{digits}f}, {cell['high']:.{digits}f}]"
    return value


def _aligned(rows: list[list[str]]) -> list[str]:
    """First column left, the others right, two spaces between."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
