"""Figures of the nine benchmarks: partial scores (3), frequent patterns (4), popularity (5)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kgprobe.tables.attributes import views
from kgprobe.tables.attributes.analyses import BIN, PARTIAL
from kgprobe.tables.attributes.published import NAMES
from kgprobe.tables.attributes.scores import VALUE
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.draw import INK, KINDS, MUTED, TAUGHT, error_bar, new_axes, style

HATCHES = ("", "//", "..", "xx", "\\\\", "++")
#: model and method
Who = tuple[str, str]


def partial_plot(results: pl.DataFrame, kinds: Mapping[Who, str]) -> Figure:
    """Partial score (bar, with interval) and full score (line across) per benchmark and model.

    `kinds`: kind of model of every bar, in their order.
    """
    with style():
        printed, sign = views.PARTIAL.of(results), marks.signs(results)
        names = list(dict.fromkeys(row[0] for row in printed.rows))
        figure, axes = new_axes(1.1 + len(names) * (0.34 + 0.2 * len(kinds)))
        ticks, legend, top = [], dict[str, Any](), 0.0
        for name in names:
            start = top
            for place, (who, kind) in enumerate(kinds.items()):
                part, whole = (
                    printed.cells.get(((name, *who), (column,))) for column in (PARTIAL, VALUE)
                )
                if part is not None:
                    bar = axes.barh(top, part["value"], 0.8, color=KINDS[kind][0], alpha=0.75)
                    bar.patches[0].set_hatch(HATCHES[place % len(HATCHES)])
                    error = error_bar(part)
                    axes.errorbar(part["value"], top, xerr=error, color=MUTED, linewidth=1)
                    legend.setdefault(who[0] + sign(part), bar)
                if part is not None and whole is not None and whole["value"] is not None:
                    ends = [top - 0.45, top + 0.45]
                    legend["full score"] = axes.plot([whole["value"]] * 2, ends, color=INK, lw=2)[0]
                top += 1
            ticks.append((start + top - 1) / 2)
            top += 0.8
        axes.set_yticks(ticks, names)
        axes.set_ylim(top - 0.5, -0.7)
        axes.set_xlim(0, 100)
        axes.set_xlabel("partial score @1, %")
        axes.grid(axis="x")
        figure.legend(legend.values(), legend.keys(), loc="outside upper center", ncols=2)
        return figure


def patterns_plot(
    results: pl.DataFrame, models: Mapping[str, Sequence[Who]], titles: Mapping[str, str]
) -> Figure:
    """The most frequent patterns: metric @1 of the largest model and of the best one.

    `models`: benchmark -> whose bars, largest first; `titles`: relation -> name. What is undefined
    is a gap with the word, never a bar of zero.
    """
    with style():
        printed = views.PATTERNS.of(results)
        figure, axes = new_axes(1.0 + 0.4 * len(printed.rows) + 0.3 * len(models))
        top, ticks, labels, legend = 0.0, [], [], dict[str, Any]()
        before = ""
        for row in printed.rows:
            benchmark, pattern = row
            if benchmark != before:
                top += 0.9
                axes.text(0, top - 0.75, benchmark, weight="bold", va="center")
                before = benchmark
            own = models.get(benchmark, ())
            for place, who in enumerate(own):
                if (row, who) in printed.cells:
                    _bar(axes, printed.cells[row, who], top + 0.36 * place, place, legend)
            ticks.append(top + 0.18 * (len(own) - 1))
            labels.append(_pattern(pattern, titles))
            top += 1
        axes.set_yticks(ticks, labels, size=8)
        axes.set_ylim(top - 0.3, -0.1)
        axes.set_xlim(0, 118)
        axes.set_xticks(range(0, 101, 20))
        axes.set_xlabel("metric @1, %; numerator / denominator")
        figure.legend(legend.values(), legend.keys(), loc="outside upper center", ncols=2)
        return figure


def _bar(axes: Axes, cell: Mapping[str, Any], y: float, place: int, legend: dict[str, Any]) -> None:
    """One bar with its fraction, or the word undef."""
    if cell["value"] is None:
        axes.text(1, y, "undef", va="center", size=7.5, color=MUTED)
        return
    colour = (TAUGHT, "#e69f00")[place % 2]
    bar = axes.barh(y, cell["value"], 0.32, color=colour, hatch=HATCHES[place % 2])
    fraction = f"{cell['numerator']:g}/{cell['denominator']:g}"
    axes.text(cell["value"] + 1, y, fraction, va="center", size=7.5, color=MUTED)
    legend.setdefault(("largest model", "best model")[place % 2], bar)


def _pattern(pattern: str, titles: Mapping[str, str]) -> str:
    """A pattern with the names of its relations, shortened."""
    name = titles.get(pattern, "")
    shown = f"{name} ({pattern})" if name else pattern
    return shown if len(shown) <= 34 else f"{shown[:33]}…"


def popularity_plot(results: pl.DataFrame, who: Who) -> Figure:
    """Density over popularity of all examples and of those fully right, per benchmark."""
    with style():
        own = results.filter(model=who[0], method=who[1])
        cells, sign = views.POPULARITY.of(own).cells, marks.signs(results)
        names = [b for b in NAMES if any(row[0] == b for row, _ in cells)]
        figure = draw.new_figure(0.6 + 1.9 * len(names))
        grid = figure.subplots(len(names), 1, squeeze=False)
        for axes, name in zip(grid[:, 0], names, strict=True):
            for metric, label, colour, line in (
                ("examples", "all", TAUGHT, "-"),
                ("examples right", "right", "#d55e00", "--"),
            ):
                bins = sorted(
                    (float(row[-1]), cell["value"])
                    for (row, column), cell in cells.items()
                    if row[0] == name and column == (metric,)
                )
                total = sum(value for _, value in bins)
                if total:
                    density = np.array([0, *(value for _, value in bins), 0]) / total / BIN
                    edges = [bins[0][0] - BIN, *(edge for edge, _ in bins), bins[-1][0] + BIN]
                    told = f"{label}, n = {total:g}"
                    axes.step(edges, density, where="post", color=colour, ls=line, label=told)
            cell = next(cell for (row, _), cell in cells.items() if row[0] == name)
            axes.set_title(f"{name}: {who[0]}{sign(cell)}", size=10, loc="left")
            axes.legend()
            axes.set_ylabel("density")
        grid[-1, 0].set_xlabel("log10 of the mean number of statements of an example's entities")
        return figure
