"""Figures as SVG and PNG: same data, same bytes; readable at 400 pixels and without colour.

Kinds of model differ by marker as well as by colour (Okabe and Ito's palette). Ink, muted ink, grid
and surface have colours of their own, so that the report can exchange them for those of its theme.
"""

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kgprobe.schema import atomic

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
    "svg.fonttype": "none",
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


def new_figure(height: float) -> Figure:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_axes(height: float) -> tuple[Figure, Axes]:
    figure = new_figure(height)
    return figure, figure.add_subplot()


def error_bar(cell: Mapping[str, Any]) -> list[list[float]]:
    """Lengths below and above the value, as matplotlib wants them."""
    return [[max(cell["value"] - cell["low"], 0)], [max(cell["high"] - cell["value"], 0)]]


def wrapped(name: str) -> str:
    """A long name on lines of about twenty signs, broken after hyphens and spaces."""
    lines = [""]
    for piece in re.findall(r"[^- ]+[- ]*|[- ]+", name):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > 20:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.strip() for line in lines)
