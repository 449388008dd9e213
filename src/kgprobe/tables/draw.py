"""Figures as SVG and PNG: same data, same bytes; readable at 400 pixels and without colour.

Kinds of model differ by marker as well as by colour (Okabe and Ito's palette). Ink, muted ink, grid
and surface have colours of their own, so that the report can exchange them for those of its theme.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kgprobe.schema import atomic
from kgprobe.tables.answers import Probe
from kgprobe.tables.table import lookup

INK, MUTED, GRID, SURFACE = "#1c1c1a", "#6b6b66", "#dededa", "#fffffe"
#: kind -> colour, marker
KINDS = {
    "masked": ("#0072b2", "o"),
    "causal": ("#d55e00", "s"),
    "seq2seq": ("#009e73", "^"),
    "api": ("#cc79a7", "D"),
}
TAUGHT, UNTAUGHT, PUBLISHED = "#0072b2", "#e69f00", "#9a9a95"
WIDTH = 5.2  # inches; 375 points, so that text of 10 points stays readable on a narrow screen

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.labelsize": 10,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": SURFACE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": SURFACE,
    "grid.color": GRID,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
}


@contextmanager
def style(salt: str = "kgprobe") -> Iterator[None]:
    """The figures' own settings; `salt` fixes the ids inside an SVG file."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: Any = {**STYLE, "svg.hashsalt": salt}
        matplotlib.rcParams.update(settings)
        yield


def save(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Write `<stem>.svg` and `<stem>.png` (200 dpi), without dates or versions in them."""
    stem = Path(stem)
    made = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".png")
    with atomic(made[0]) as temporary:
        temporary.write_text(svg(figure, stem.name), encoding="utf-8")
    with style(stem.name), atomic(made[1]) as temporary:
        figure.savefig(temporary, format="png", dpi=200, metadata={"Software": None})
    return made


def svg(figure: Figure, name: str) -> str:
    """A figure as SVG text; `name` fixes its ids."""
    stream = io.StringIO()
    nothing: dict[str, Any] = {"Date": None, "Creator": None}
    with style(name):
        figure.savefig(stream, format="svg", metadata=nothing)
    return stream.getvalue()


def names(probes: Sequence[Probe]) -> dict[str, str]:
    """label -> the shortest name that tells the probes apart: the model and what differs."""
    parts = {p.label: [x for x in p.label.split(" | ") if x != p.benchmark] for p in probes}
    shown = {}
    for probe in probes:
        rivals = [parts[p.label] for p in probes if p.model == probe.model]
        differing = [x for x in parts[probe.label][1:] if not all(x in rival for rival in rivals)]
        shown[probe.label] = ", ".join([probe.model, *differing])
    return shown


def calibration_plot(frame: pl.DataFrame, probes: Sequence[Probe]) -> Figure:
    """Accuracy on taught and untaught facts with 95 % intervals, chance, and AUC, per probe."""
    with style():
        cells = lookup(frame)
        present = [p for p in probes if (p.label, "taught") in cells]
        shown = names(present)
        figure, axes = new_axes(0.9 + 0.72 * len(present))
        legend: dict[str, Any] = {}
        for place, probe in enumerate(present):
            for offset, column, colour in ((0.0, "taught", TAUGHT), (0.26, "untaught", UNTAUGHT)):
                cell = cells[probe.label, column]
                bar = axes.barh(place + offset, cell["value"], height=0.24, color=colour)
                axes.errorbar(
                    cell["value"], place + offset, xerr=error_bar(cell), color=INK, linewidth=1.2
                )
                legend.setdefault(f"{column} facts", bar)
            chance = cells[probe.label, "chance"]["value"]
            legend["chance"] = axes.plot(
                [chance, chance], [place - 0.14, place + 0.4], color=INK, lw=1.4, ls=(0, (3, 2))
            )[0]
            area = cells[probe.label, "AUC"]
            axes.text(0, place - 0.3, shown[probe.label], va="center", weight="bold")
            text = f"AUC {area['value']:.2f} ({area['low']:.2f} to {area['high']:.2f})"
            axes.text(100, place - 0.3, text, va="center", ha="right", color=MUTED, size=9)
        axes.set_ylim(len(present) - 0.45, -0.55)
        axes.set_xlim(0, 100)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("items ranked first, %")
        axes.grid(axis="x")
        figure.legend(legend.values(), legend.keys(), loc="outside upper center", ncols=3)
        return figure


def relations_plot(
    frame: pl.DataFrame, probes: Sequence[Probe], titles: Mapping[str, str] | None = None
) -> Figure:
    """Accuracy per relation (rows) and probe (columns) of one benchmark, and chance.

    `titles`: relation -> its name; relations are ordered by mean accuracy.
    """
    with style():
        cells, shown = lookup(frame), names(probes)
        chance = f"random | {probes[0].benchmark}"
        columns = [chance, *(p.label for p in probes)]
        rows = sorted({row for row, column in cells if column == columns[1]})
        values = np.array([[cells[row, column]["value"] for column in columns] for row in rows])
        order = np.lexsort((rows, -values[:, 1:].mean(axis=1)))
        rows, values = [rows[i] for i in order], values[order]
        heads = ["chance", *(_wrapped(shown[p.label]) for p in probes)]
        longest = max(len(line) for head in heads for line in head.split("\n"))
        figure, axes = new_axes(0.3 + 0.075 * longest + 0.235 * len(rows))
        axes.pcolormesh(values, cmap="Blues", vmin=0, vmax=100, edgecolors=SURFACE, linewidth=1.5)
        axes.invert_yaxis()
        middle = np.arange(len(rows)) + 0.5
        axes.set_yticks(middle, [_title(row, titles) for row in rows], size=9)
        axes.set_xticks(np.arange(len(columns)) + 0.5, heads, rotation=90, size=9)
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        if len(columns) <= 12:
            for (y, x), value in np.ndenumerate(values):
                ink = "#ffffff" if value > 68 else "#111111"
                axes.text(
                    x + 0.5, y + 0.5, f"{value:.0f}", ha="center", va="center", size=8.5, color=ink
                )
        return figure


def new_axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def error_bar(cell: Mapping[str, Any]) -> list[list[float]]:
    """Lengths below and above the value, as matplotlib wants them."""
    return [[max(cell["value"] - cell["low"], 0)], [max(cell["high"] - cell["value"], 0)]]


def _wrapped(name: str, width: int = 20) -> str:
    """A long name on two or more lines, broken after hyphens and spaces."""
    lines = [""]
    for piece in re.findall(r"[^- ]+[- ]*|[- ]+", name):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.strip() for line in lines)


def _title(relation: str, titles: Mapping[str, str] | None) -> str:
    name = (titles or {}).get(relation, "")
    return f"{name} ({relation})" if name else relation
