"""Sweeps: accuracy against few training examples (Figure 2), label-set size and trigger length (3).

The paper prints no numbers for either figure; shapes and the gains that its text names compare.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.ticker import MaxNLocator

from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.tables.autoprompt.views import FIGURE2, FIGURE3
from kgprobe.tables.report import draw
from kgprobe.tables.report.chapter import Drawing, Drawn
from kgprobe.tables.results import Number

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: dict[str, Any] = {"searched": "-", "finetuned": (0, (4, 3))}
NAMES = {"searched": "AutoPrompt", "finetuned": "fine-tuned"}


def low_data(benchmark: str, model: str, points: pl.DataFrame) -> Iterator[Number]:
    """Figure 2, of SWEEPS: dev accuracy in per cent by number of training examples (`size`).

    A mean over subsets, whose bounds are the worst and the best; n counts subsets. Metric
    `dev accuracy`: the principal one, with the most examples; without bounds, subsets are none.
    """
    sizes = points.sort("method", "size", "draw").group_by("method", "size", maintain_order=True)
    last: dict[str, Number] = {}
    for (method, size), own in sizes:
        values = 100 * own["value"].to_numpy()
        last[str(method)] = Number(
            benchmark=benchmark, model=model, prompt=str(method), method="low_data",
            metric="accuracy", slice="dev", setting={"size": int(str(size))}, n=len(values),
            value=values.mean(), interval=Interval(values.min(), values.max(), "range of subsets"),
        )  # fmt: skip
        yield last[str(method)]
    for number in last.values():
        yield number.but(metric="dev accuracy", slice="", interval=None)


def grid(benchmark: str, model: str, points: pl.DataFrame) -> Iterator[Number]:
    """Figure 3, of SWEEPS: dev accuracy in per cent by label tokens and trigger length.

    Metric `dev accuracy`: the best of the grid, an oracle, chosen on the rows that it is measured
    on, and so without an interval. n: dev examples.
    """
    best: dict[int, Number] = {}
    for row in points.sort("k", "label_tokens", "triggers").iter_rows(named=True):
        interval = Interval(*wilson(round(row["value"] * row["n"]), row["n"]), "wilson")
        setting = {"k": row["k"], "labels": row["label_tokens"], "triggers": row["triggers"]}
        number = Number(
            benchmark=benchmark, model=model, prompt=row["method"], method="grid",
            metric="accuracy", slice="dev", setting=setting, n=row["n"],
            value=100 * row["value"], interval=interval.times(100),
        )  # fmt: skip
        yield number
        known = best.setdefault(row["k"], number)
        best[row["k"]] = max(known, number, key=lambda found: found.value or 0.0)
    for number in best.values():
        yield number.but(metric="dev accuracy", slice="", interval=None)


class Line(NamedTuple):
    """Points of a figure that are joined: (x, row of RESULTS), and how they look."""

    label: str
    points: Sequence[tuple[float, dict[str, Any]]]
    place: int
    dash: Any = "none"


def drawings(results: pl.DataFrame) -> list[Drawing]:
    """Figure 2 of every benchmark, Figure 3 of every benchmark, model and k."""
    made = []
    for (benchmark,), own in _parts(FIGURE2.chosen(results), "benchmark"):
        models = own["model"].unique(maintain_order=True).to_list()
        lines = []
        for (model, prompt), part in _parts(own, "model", "prompt"):
            label = f"{model}, {NAMES.get(prompt, prompt)}"
            dash = DASHES.get(prompt, ":")
            lines.append(Line(label, _points(part, "size"), models.index(model), dash))
        title, caption = f"Figure 2: {benchmark}", FIGURE2.caption
        made.append(_drawing(f"autoprompt_figure2_{benchmark}", title, caption, lines, own))
    for number, (key, own) in enumerate(_parts(FIGURE3.chosen(results), *FIGURE3.rows)):
        lines = []
        for place, ((labels,), part) in enumerate(_parts(own, "labels")):
            label = f"{labels} label token{'s' if labels != '1' else ''}"
            lines.append(Line(label, _points(part, "triggers"), place))
        title, caption = f"Figure 3: {key[0]}, {key[1]}, k {key[2]}", FIGURE3.caption
        made.append(_drawing(f"autoprompt_figure3_{number}", title, caption, lines, own))
    return made


def _parts(own: pl.DataFrame, *names: str) -> Iterable[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Rows that agree in some dimensions; numbers in numeric order."""
    numeric = [pl.col(name).cast(pl.Int64, strict=False) for name in names]
    return own.sort(*numeric, maintain_order=True).group_by(*names, maintain_order=True)


def _points(own: pl.DataFrame, name: str) -> list[tuple[float, dict[str, Any]]]:
    rows = ((float(row[name]), row) for row in own.iter_rows(named=True))
    return sorted(rows, key=lambda point: point[0])


def _drawing(
    name: str, title: str, caption: str, lines: Sequence[Line], own: pl.DataFrame
) -> Drawing:
    """Lines by number of examples (log scale) or, where they are not dashed, of trigger tokens."""
    log = any(line.dash != "none" for line in lines)
    with draw.style():
        figure, axes = draw.new_axes(3.2 if log else 3.0)
        for number, line in enumerate(lines):
            # side by side, or the bars of one place would lie over each other
            apart = number - (len(lines) - 1) / 2
            xs = [x * 1.05**apart if log else x + 0.06 * apart for x, _ in line.points]
            rows = [row for _, row in line.points]
            axes.errorbar(
                xs,
                [row["value"] for row in rows],
                yerr=np.hstack([draw.error_bar(row) for row in rows]),
                color=COLOURS[line.place % 6],
                marker=MARKERS[line.place % 6],
                linestyle=line.dash if log else "-",
                capsize=3,
                label=line.label,
            )
        if log:
            ticks = sorted({int(x) for line in lines for x, _ in line.points})
            axes.set_xscale("log")
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.minorticks_off()
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("training examples (log scale)" if log else "trigger tokens")
        axes.set_ylabel("dev accuracy, %")
        axes.grid(axis="y")
        figure.legend(loc="outside upper center", ncols=2, handlelength=3.5)
    return Drawn("autoprompt", name, title, caption, figure, own).drawing()
