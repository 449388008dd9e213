"""The headline: one row per probe, as a TABLE, and as text on the terminal.

    python -m kgprobe.tables.headline results/tables/headline.parquet results/report/index.html

`bear_models.parquet` in place of the first works, too.
"""

import sys
from collections.abc import Sequence
from functools import partial

import polars as pl

from kgprobe import schema
from kgprobe.tables import marks, table

#: Columns, in the order of reading; the last three where a calibration exists.
COLUMNS = ("accuracy", "chance", "sem", "taught", "untaught", "AUC")
BASELINES = ("random", "majority")


def build(models: pl.DataFrame, calibration: pl.DataFrame | None = None) -> pl.DataFrame:
    """`headline` from `bear_models` and `calibration`: accuracy (with its published figure), chance
    of its benchmark, SEM over templates, accuracy on taught and untaught facts, and AUC."""
    cells, cell = table.lookup(models), partial(table.cell, paper="kgprobe")
    calibrated = table.lookup(calibration) if calibration is not None else {}
    rows = []
    for (label, column), found in cells.items():
        if column != "score" or label.split(" | ")[0] in BASELINES:
            continue
        row = partial(cell, "headline", label)
        chance = cells[f"random | {label.split(' | ')[1]}", "score"]
        interval = (found["low"], found["high"])
        rows.append(row("accuracy", found["value"], found["n"], interval, found["published"]))
        rows.append(row("chance", chance["value"], chance["n"], None, chance["published"]))
        if error := cells.get((label, "sem")):
            rows.append(row("sem", error["value"], error["n"]))
        for name in ("taught", "untaught", "AUC"):
            if known := calibrated.get((label, name)):
                interval = (known["low"], known["high"])
                rows.append(row(name, known["value"], known["n"], interval))
    return table.build(rows)


def text(frame: pl.DataFrame) -> str:
    """The headline as aligned text, a block per benchmark."""
    cells = table.lookup(frame)
    labels = dict.fromkeys(row for row, _ in cells)
    blocks: dict[str, list[str]] = {}
    for label in labels:
        blocks.setdefault(label.split(" | ")[1], []).append(label)
    lines = []
    for benchmark, members in blocks.items():
        n = cells[members[0], "accuracy"]["n"]
        lines += [f"{benchmark}: {n:,} items; accuracy in % with its 95 % interval", ""]
        columns = [c for c in COLUMNS if any((label, c) in cells for label in members)]
        published = any(cells[label, "accuracy"]["published"] is not None for label in members)
        head = ["model, method, BOS", *columns, *(["published"] if published else [])]
        body = [_row(cells, label, columns, published) for label in members]
        lines += [*_aligned([head, *body]), ""]
    lines += [line for note in marks.notes(labels) for line in (note, "")]
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
        frame = build(frame)
    print(text(frame))
    if len(arguments) == 2:
        print(f"report: {arguments[1]}")
    return 0


def _row(
    cells: dict[tuple[str, str], dict[str, float]], label: str, columns: list[str], published: bool
) -> list[str]:
    parts = label.split(" | ")
    shown = [", ".join([parts[0], *parts[2:]])]
    for column in columns:
        cell = cells.get((label, column))
        digits = 3 if column == "AUC" else 1
        value = f"{cell['value']:.{digits}f}" if cell else "-"
        if cell and column in ("accuracy", "AUC"):
            value += f" [{cell['low']:.{digits}f}, {cell['high']:.{digits}f}]"
        shown.append(value)
    if published:
        paper = cells[label, "accuracy"]["published"]
        shown.append("-" if paper is None else f"{paper:.2f}")
    return shown


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
