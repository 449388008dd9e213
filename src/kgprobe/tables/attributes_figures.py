"""Figures of the nine benchmarks: partial scores (3), frequent patterns (4), popularity (5)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kgprobe.tables.attributes_analyses import BIN
from kgprobe.tables.attributes_published import BENCHMARKS
from kgprobe.tables.draw import INK, KINDS, MUTED, TAUGHT, WIDTH, error_bar, new_axes, style
from kgprobe.tables.table import lookup

HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def partial_plot(frame: pl.DataFrame, kinds: Mapping[str, str]) -> Figure:
    """Partial score (bar, with interval) and full score (line across) per benchmark and model.

    `frame`: `kg_partial`; `kinds`: "model | method" -> kind of model, in the order of the bars.
    """
    with style():
        cells = lookup(frame)
        names = [b for b in BENCHMARKS if any(row.startswith(f"{b} | ") for row, _ in cells)]
        figure, axes = new_axes(1.1 + len(names) * (0.34 + 0.2 * len(kinds)))
        ticks, legend, top = [], dict[str, Any](), 0.0
        for name in names:
            start = top
            for place, (model, kind) in enumerate(kinds.items()):
                found = cells.get((f"{name} | {model}", "partial"))
                if found is not None:
                    bar = axes.barh(top, found["value"], 0.8, color=KINDS[kind][0], alpha=0.75)
                    bar.patches[0].set_hatch(HATCHES[place % len(HATCHES)])
                    axes.errorbar(
                        found["value"], top, xerr=error_bar(found), color=MUTED, linewidth=1
                    )
                    legend.setdefault(model.split(" | ")[0], bar)
                full = cells.get((f"{name} | {model}", "full"))
                if full is not None:
                    line = axes.plot([full["value"]] * 2, [top - 0.45, top + 0.45], color=INK, lw=2)
                    legend["full score"] = line[0]
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
    frame: pl.DataFrame, models: Mapping[str, Sequence[str]], titles: Mapping[str, str]
) -> Figure:
    """The most frequent patterns: metric @1 of the largest model and of the best one.

    `frame`: `kg_patterns`; `models`: benchmark -> "model | method" of the bars, largest first;
    `titles`: relation -> name. What is undefined is a gap with the word, never a bar of zero.
    """
    with style():
        cells = lookup(frame)
        rows = list(dict.fromkeys(frame["row"].sort()))
        rows.sort(key=lambda r: (BENCHMARKS.index(r.split(" | ")[0]), r))
        figure, axes = new_axes(1.0 + 0.52 * len(rows) + 0.3 * len(models))
        top, ticks, labels, legend = 0.0, [], [], dict[str, Any]()
        before = ""
        for row in rows:
            benchmark, _, pattern = row.split(" | ", 2)
            if benchmark != before:
                top += 0.9
                axes.text(0, top - 0.75, benchmark, weight="bold", va="center")
                before = benchmark
            own = models.get(benchmark, ())
            for place, model in enumerate(own):
                y = top + 0.36 * place
                _pattern_bar(axes, cells, row, model, y, place, legend)
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


def _pattern_bar(
    axes: Axes,
    cells: Mapping[tuple[str, str], Mapping[str, Any]],
    row: str,
    model: str,
    y: float,
    place: int,
    legend: dict[str, Any],
) -> None:
    """One bar with its fraction, or the word undef."""
    below = cells.get((row, f"{model}, denominator"))
    if below is None:
        return
    found = cells.get((row, model))
    if found is None:
        axes.text(1, y, "undef", va="center", size=7.5, color=MUTED)
        return
    colour = (TAUGHT, "#e69f00")[place % 2]
    bar = axes.barh(y, found["value"], 0.32, color=colour, hatch=HATCHES[place % 2])
    fraction = f"{cells[row, f'{model}, numerator']['value']:g}/{below['value']:g}"
    axes.text(found["value"] + 1, y, fraction, va="center", size=7.5, color=MUTED)
    legend.setdefault(("largest model", "best model")[place % 2], bar)


def _pattern(pattern: str, titles: Mapping[str, str]) -> str:
    """A pattern with the names of its relations, shortened."""
    name = titles.get(pattern, "")
    shown = f"{name} ({pattern})" if name else pattern
    return shown if len(shown) <= 34 else f"{shown[:33]}…"


def popularity_plot(frame: pl.DataFrame, models: Mapping[str, str]) -> Figure:
    """Density over popularity of all examples and of those fully right, per benchmark.

    `frame`: `kg_popularity`; `models`: benchmark -> "model | method" that is drawn.
    """
    with style():
        cells = lookup(frame)
        names = [b for b in BENCHMARKS if b in models]
        figure = Figure(figsize=(WIDTH, 0.6 + 1.9 * len(names)), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(names), 1, squeeze=False)
        for axes, name in zip(grid[:, 0], names, strict=True):
            prefix = f"{name} | {models[name]} | bin "
            bins = sorted(
                float(r.removeprefix(prefix))
                for r, c in cells
                if r.startswith(prefix) and c == "all"
            )
            for column, colour, line in (("all", TAUGHT, "-"), ("right", "#d55e00", "--")):
                own = [cells[f"{prefix}{edge:05.2f}", column]["value"] for edge in bins]
                total = sum(own)
                if total:
                    density = np.array([0, *own, 0]) / total / BIN
                    edges = [bins[0] - BIN, *bins, bins[-1] + BIN]
                    label = f"{column}, n = {total:g}"
                    axes.step(edges, density, where="post", color=colour, ls=line, label=label)
            axes.set_title(f"{name}: {models[name].split(' | ')[0]}", size=10, loc="left")
            axes.legend()
            axes.set_ylabel("density")
        grid[-1, 0].set_xlabel("log10 of the mean number of statements of an example's entities")
        return figure
