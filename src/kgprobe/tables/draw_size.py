"""The figure of accuracy against parameters, with names beside the points."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from kgprobe.tables.answers import Probe
from kgprobe.tables.draw import (
    INK,
    KINDS,
    MUTED,
    PUBLISHED,
    SURFACE,
    error_bar,
    names,
    new_axes,
    style,
)
from kgprobe.tables.table import lookup

LEADER = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 5}

Cells = Mapping[tuple[str, str], Any]


def size_plot(frame: pl.DataFrame, probes: Sequence[Probe], chance: float | None) -> Figure:
    """Accuracy against parameters: `probes` (of one benchmark) with their 95 % intervals, the
    published points of `bear_size` in grey with one standard error. `chance` in per cent.

    Pass a frame without the published rows where the benchmark is not the published one.
    """
    with style():
        figure, axes = new_axes(3.9)
        cells = lookup(frame)
        seen = _published_points(axes, cells)
        seen |= _own_points(axes, cells, probes)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: _parameters(value))
        axes.minorticks_off()
        axes.set_xlabel("parameters (log scale)")
        axes.set_ylabel("accuracy, %")
        axes.grid(axis="y")
        axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
        axes.margins(x=0.12)
        if chance is not None:
            line = axes.axhline(chance, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            seen["chance"] = line
        _label_points(figure, axes, cells, probes)
        figure.legend(
            seen.values(), seen.keys(), loc="outside upper center", ncols=3, columnspacing=1.2
        )
        return figure


def _published_points(axes: Axes, cells: Cells) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for row in sorted({row for row, _ in cells if row.startswith("published | ")}):
        kind, size, score = row.split(" | ")[1], cells[row, "parameters"], cells[row, "score"]
        drawn = axes.errorbar(
            size["value"],
            score["value"],
            yerr=error_bar(score),
            color=PUBLISHED,
            marker=KINDS[kind][1],
            markersize=5,
            linewidth=1,
            zorder=2,
        )
        seen.setdefault(f"published, {kind}", drawn)
    return seen


def _own_points(axes: Axes, cells: Cells, probes: Sequence[Probe]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for probe in (p for p in probes if (p.label, "parameters") in cells):
        colour, marker = KINDS[probe.kind]
        drawn = axes.errorbar(
            cells[probe.label, "parameters"]["value"],
            cells[probe.label, "score"]["value"],
            yerr=error_bar(cells[probe.label, "score"]),
            color=colour,
            marker=marker,
            markersize=7,
            markerfacecolor=SURFACE if probe.control else colour,
            markeredgewidth=1.6,
            linewidth=1.6,
            zorder=3,
        )
        seen.setdefault(f"{probe.kind}{', control' if probe.control else ''}", drawn)
    return seen


def _label_points(figure: Figure, axes: Axes, cells: Cells, probes: Sequence[Probe]) -> None:
    """Write each model's name beside its point, at the first place that is free of other points.

    Published points may be written over when no place is free; other names and own points not.
    """
    figure.draw_without_rendering()
    shown = names(probes)
    own = [p.label for p in probes if (p.label, "parameters") in cells]
    hard = [_extent(axes, cells, label) for label in own]
    others = sorted({row for row, _ in cells if row.startswith("published | ")})
    soft = [_extent(axes, cells, row) for row in others]
    frame = axes.get_window_extent()
    near = [(dx, dy) for dy in (0, 9, -9, 16, -16) for dx in (8, -8)]
    far = [(dx, dy) for dy in (27, -27, 40, -40, 54, -54) for dx in (8, -8)]
    for label in own:
        at = (cells[label, "parameters"]["value"], cells[label, "score"]["value"])
        for obstacles, place in (
            (o, p) for places in (near, far) for o in (hard + soft, hard) for p in places
        ):
            text = _annotate(axes, shown[label], at, place)
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
            inside &= frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in obstacles):
                hard.append(box)
                if abs(place[1]) > 16:  # far away: a line leads to the point
                    text.remove()
                    line = {"relpos": (float(place[0] < 0), 0.5), **LEADER}
                    _annotate(axes, shown[label], at, place, arrowprops=line)
                break
            text.remove()


def _annotate(
    axes: Axes, name: str, at: tuple[float, float], place: tuple[int, int], **options: Any
) -> Annotation:
    """A name beside a point, `place` points to the right and above of it."""
    side = "left" if place[0] > 0 else "right"
    unit = "offset points"
    text = axes.annotate(name, at, place, textcoords=unit, ha=side, va="center", size=9, **options)
    text.set_path_effects([withStroke(linewidth=1.2, foreground=SURFACE)])
    return text


def _extent(axes: Axes, cells: Cells, row: str) -> Bbox:
    """The box of a point with its interval, in display coordinates."""
    x, score = cells[row, "parameters"]["value"], cells[row, "score"]
    low, high = axes.transData.transform([(x, score["low"]), (x, score["high"])])
    middle = axes.transData.transform((x, score["value"]))
    return Bbox(
        [
            (middle[0] - 6, min(low[1], middle[1] - 6)),
            (middle[0] + 6, max(high[1], middle[1] + 6)),
        ]
    )


def _parameters(value: float) -> str:
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g} {letter}"
    return f"{value:g}"
