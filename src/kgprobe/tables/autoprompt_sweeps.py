"""Sweeps: accuracy against few training examples (Figure 2), label-set size and trigger length (3).

The paper prints no numbers for either figure; shapes and the gains that its text names compare.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kgprobe.metrics.intervals import wilson
from kgprobe.tables import draw, table
from kgprobe.tables.drawing import Drawing

PAPER = "autoprompt"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: Mapping[str, Any] = {"searched": "-", "finetuned": (0, (4, 3))}
WORDS = {"searched": "AutoPrompt", "finetuned": "fine-tuned"}


@dataclass(frozen=True)
class Sweep:
    """The points (SWEEPS) of one model on one benchmark."""

    benchmark: str
    model: str
    points: pl.DataFrame


def low_data(sweeps: Sequence[Sweep]) -> pl.DataFrame | None:
    """Figure 2: dev accuracy in per cent by number of training examples.

    Row `benchmark | model | method`, column the number of examples; value: mean over subsets, low
    and high: the worst and the best subset, as in the figure; n: subsets.
    """
    cells = []
    for sweep in sweeps:
        for (method, size), own in sweep.points.sort("method", "size", "draw").group_by(
            "method", "size", maintain_order=True
        ):
            values = 100 * own["value"].to_numpy()
            row = f"{sweep.benchmark} | {sweep.model} | {method}"
            bounds = (float(values.min()), float(values.max()))
            cells.append(
                table.cell(
                    "autoprompt_figure2",
                    row,
                    str(size),
                    values.mean(),
                    len(values),
                    bounds,
                    None,
                    PAPER,
                )
            )
    return table.build(cells) if cells else None


def grid(sweeps: Sequence[Sweep]) -> pl.DataFrame | None:
    """Figure 3: dev accuracy in per cent by label tokens and trigger length, with Wilson intervals.

    Row `benchmark | model | k`, column `labels x triggers`; n: dev examples.
    """
    cells = []
    for sweep in sweeps:
        for point in sweep.points.sort("k", "label_tokens", "triggers").iter_rows(named=True):
            low, high = wilson(round(point["value"] * point["n"]), point["n"])
            cells.append(
                table.cell(
                    "autoprompt_figure3",
                    f"{sweep.benchmark} | {sweep.model} | k {point['k']}",
                    f"{point['label_tokens']} x {point['triggers']}",
                    100 * point["value"],
                    point["n"],
                    (100 * low, 100 * high),
                    None,
                    PAPER,
                )
            )
    return table.build(cells) if cells else None


def draw_low_data(frame: pl.DataFrame) -> list[Drawing]:
    """Figure 2 as a drawing per benchmark: mean over subsets, bars from worst to best."""
    made = []
    cells = table.lookup(frame)
    for benchmark in dict.fromkeys(r.split(" | ")[0] for r in frame["row"]):
        rows = [r for r in dict.fromkeys(frame["row"]) if r.startswith(f"{benchmark} | ")]
        name = f"autoprompt_figure2_{benchmark}"
        caption = "Mean over subsets; bars: worst and best subset. No numbers are printed for it."
        picture = _curves(cells, rows)
        made.append(_drawing(name, f"Figure 2: {benchmark}", caption, picture))
    return made


def _curves(cells: Mapping[tuple[str, str], Any], rows: Sequence[str]) -> Figure:
    models = list(dict.fromkeys(row.split(" | ")[1] for row in rows))
    with draw.style():
        figure, axes = draw.new_axes(3.2)
        for number, row in enumerate(rows):
            _, model, method = row.split(" | ")
            own = sorted((int(c), cell) for (r, c), cell in cells.items() if r == row)
            sizes = [size for size, _ in own]
            values = [cell["value"] for _, cell in own]
            spread = [
                [cell["value"] - cell["low"] for _, cell in own],
                [cell["high"] - cell["value"] for _, cell in own],
            ]
            place = models.index(model)
            # side by side, or the bars of one size would lie over each other
            apart = 1.05 ** (number - (len(rows) - 1) / 2)
            axes.errorbar(
                [size * apart for size in sizes],
                values,
                yerr=spread,
                color=COLOURS[place % 6],
                marker=MARKERS[place % 6],
                linestyle=DASHES.get(method, ":"),
                capsize=3,
                label=f"{model}, {WORDS.get(method, method)}",
            )
        axes.set_xscale("log")
        ticks = sorted({int(c) for _, c in cells})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("training examples (log scale)")
        axes.set_ylabel("dev accuracy, %")
        axes.grid(axis="y")
        figure.legend(loc="outside upper center", ncols=2, handlelength=3.5)
    return figure


def draw_grid(frame: pl.DataFrame) -> list[Drawing]:
    """Figure 3 as a drawing per benchmark, model and k: accuracy by trigger length, one line per
    number of label tokens."""
    made = []
    cells = table.lookup(frame)
    for number, row in enumerate(dict.fromkeys(frame["row"])):
        points = {c: cell for (r, c), cell in cells.items() if r == row}
        sizes = sorted({int(c.split(" x ")[0]) for c in points})
        with draw.style():
            figure, axes = draw.new_axes(3.0)
            for place, labels in enumerate(sizes):
                own = sorted(
                    (int(c.split(" x ")[1]), cell)
                    for c, cell in points.items()
                    if int(c.split(" x ")[0]) == labels
                )
                spread = [
                    [cell["value"] - cell["low"] for _, cell in own],
                    [cell["high"] - cell["value"] for _, cell in own],
                ]
                axes.errorbar(
                    [m + 0.06 * place for m, _ in own],
                    [cell["value"] for _, cell in own],
                    yerr=spread,
                    color=COLOURS[place % 6],
                    marker=MARKERS[place % 6],
                    capsize=3,
                    label=f"{labels} label token{'s' if labels > 1 else ''}",
                )
            axes.set_xlabel("trigger tokens")
            axes.set_ylabel("dev accuracy, %")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(axis="y")
            figure.legend(loc="outside upper center", ncols=3)
        name = f"autoprompt_figure3_{number}"
        caption = "95 % intervals over dev examples. No numbers are printed for it."
        made.append(_drawing(name, f"Figure 3: {row}", caption, figure))
    return made


def _drawing(name: str, title: str, caption: str, figure: Figure) -> Drawing:
    return Drawing(PAPER, name, title, caption, draw.svg(figure, name), caption)
