"""BEAR's figures from RESULTS: accuracy against size, by relation, and on taught facts."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from kgprobe.tables.bear.slices import SLICES, Slice, shown
from kgprobe.tables.bear.study import SUBJECT
from kgprobe.tables.confidence import OF_BINS
from kgprobe.tables.report.chapter import Drawn
from kgprobe.tables.report.draw import (
    INK,
    KINDS,
    MUTED,
    PUBLISHED,
    SURFACE,
    TAUGHT,
    UNTAUGHT,
    error_bar,
    new_axes,
    style,
    wrapped,
)
from kgprobe.tables.report.marks import signs

Row = Mapping[str, Any]
Sheet = Mapping[str, Mapping[str, str]]
#: Benchmarks of the released design and size, beside which the published points are drawn.
COMPARABLE = ("bear_released", "bear_lite")
SIZES = "Lines are 95 % intervals; hollow: control models."
COMPARED = (
    " Grey: published scores of the complete released set over three templates, with one standard"
    " error over templates."
)
SLICED = (
    "With 95 % intervals, in every bin in the order of the legend; hollow: control models; "
    "crosses: the same questions without the subject; dashed: chance; n: items."
)
#: probes of one kind are told apart by these
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
LEADER = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 5}


@dataclass(frozen=True)
class Point:
    """A model in the figure of sizes: a row of RESULTS, its number of parameters and kind."""

    row: Row
    parameters: float
    kind: str
    is_control: bool = False
    name: str = ""


def figures(results: pl.DataFrame, sheet: Sheet, titles: Mapping[str, str]) -> Iterator[Drawn]:
    """The figures of BEAR's RESULTS; `sheet`: models by name; `titles`: relation -> its name."""
    own = results.filter(paper="bear")
    if own.filter(metric="taught").height:
        yield Drawn(
            "calibration",
            "calibration",
            "Taught and untaught facts",
            "Items whose correct option is ranked first, with 95 % intervals; dashed: chance.",
            calibration_plot(own),
            _whole(own, "taught", "untaught", "chance", "AUC"),
        )
    for benchmark in benchmarks(own, sheet):
        points, chance = points_of(benchmark, own, sheet)
        if any(point.name for point in points):
            caption = SIZES + (COMPARED if benchmark in COMPARABLE else "")
            title, figure = "Accuracy against size", size_plot(points, chance)
            rows = pl.DataFrame([point.row for point in points], schema=own.schema)
            yield Drawn(benchmark, f"bear_size_{benchmark}", title, caption, figure, rows)
        yield Drawn(
            benchmark,
            f"bear_relations_{benchmark}",
            "Accuracy by relation",
            "Per cent, mean over templates; relations ordered by their mean over models.",
            relations_plot(own.filter(benchmark=benchmark), sheet, titles),
            _related(own.filter(benchmark=benchmark)),
        )
        told = _reliable(own.filter(benchmark=benchmark))
        if told:
            yield Drawn(
                benchmark,
                f"bear_reliability_{benchmark}",
                "Confidence and accuracy",
                "Answers in ten bins of confidence; a larger point has more. On the dashed line "
                "confidence and accuracy are the same.",
                reliability_plot(told, own, sheet),
                pl.DataFrame([r for pairs in told.values() for pair in pairs for r in pair]),
            )
        yield from _sliced(benchmark, own.filter(benchmark=benchmark), sheet)


def benchmarks(own: pl.DataFrame, sheet: Sheet) -> list[str]:
    """The benchmarks that a model of the sheet answered."""
    asked = own.filter(pl.col("model").is_in(list(sheet)), metric="accuracy")
    return asked["benchmark"].unique(maintain_order=True).to_list()


def names(own: pl.DataFrame, rows: Sequence[Row]) -> list[str]:
    """Per row of RESULTS the shortest name that tells its probe apart: the model and what differs,
    with the signs of its numbers."""
    shown, sign = [], signs(own)
    for row in rows:
        rivals = [r for r in rows if r["model"] == row["model"]]
        parts = [
            row[d] for d in ("benchmark", "method", "prompt") if any(r[d] != row[d] for r in rivals)
        ]
        shown.append(", ".join([row["model"] + sign(row), *parts]))
    return shown


def _whole(own: pl.DataFrame, *metrics: str) -> pl.DataFrame:
    """The numbers of all items, mean over templates."""
    asked = own.filter(pl.col("metric").is_in(metrics), pl.col("method") != "published")
    return asked.filter(group="", slice="", setting="{}")


def _related(own: pl.DataFrame) -> pl.DataFrame:
    """The accuracies of relations, mean over templates."""
    return own.filter(pl.col("group") != "", metric="accuracy", slice="", setting="{}")


def calibration_plot(own: pl.DataFrame) -> Figure:
    """Accuracy on taught and untaught facts with 95 % intervals, chance, and AUC, per probe."""
    found: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in _whole(own, "taught", "untaught", "chance", "AUC").iter_rows(named=True):
        key = tuple(row[d] for d in ("benchmark", "model", "prompt", "method"))
        found.setdefault(key, {})[row["metric"]] = row
    shown = names(own, [cells["taught"] for cells in found.values()])
    with style():
        figure, axes = new_axes(0.9 + 0.72 * len(found))
        legend: dict[str, Any] = {}
        for place, cells in enumerate(found.values()):
            for offset, column, colour in ((0.0, "taught", TAUGHT), (0.26, "untaught", UNTAUGHT)):
                cell = cells[column]
                bar = axes.barh(place + offset, cell["value"], height=0.24, color=colour)
                axes.errorbar(
                    cell["value"], place + offset, xerr=error_bar(cell), color=INK, linewidth=1.2
                )
                legend.setdefault(f"{column} facts", bar)
            chance = cells["chance"]["value"]
            legend["chance"] = axes.plot(
                [chance, chance], [place - 0.14, place + 0.4], color=INK, lw=1.4, ls=(0, (3, 2))
            )[0]
            axes.text(0, place - 0.3, shown[place], va="center", weight="bold")
            area = cells["AUC"]
            text = f"AUC {area['value']:.2f} ({area['low']:.2f} to {area['high']:.2f})"
            axes.text(100, place - 0.3, text, va="center", ha="right", color=MUTED, size=9)
        axes.set_ylim(len(found) - 0.45, -0.55)
        axes.set_xlim(0, 100)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("items ranked first, %")
        axes.grid(axis="x")
        figure.legend(legend.values(), legend.keys(), loc="outside upper center", ncols=3)
        return figure


def relations_plot(own: pl.DataFrame, sheet: Sheet, titles: Mapping[str, str]) -> Figure:
    """Accuracy per relation (rows) and probe (columns) of one benchmark, and chance.

    Relations are ordered by mean accuracy over the probes.
    """
    table = _related(own)
    asked = table.filter(pl.col("model").is_in(list(sheet)))
    probes = list(
        asked.unique(["model", "prompt", "method"], maintain_order=True).iter_rows(named=True)
    )
    rows = sorted(table["group"].unique().to_list())
    known = {
        (r["group"], r["model"], r["prompt"], r["method"]): r["value"]
        for r in table.iter_rows(named=True)
    }
    columns = [("random", "", ""), *((p["model"], p["prompt"], p["method"]) for p in probes)]
    values = np.array([[known[row, *column] for column in columns] for row in rows])
    order = np.lexsort((rows, -values[:, 1:].mean(axis=1)))
    rows, values = [rows[i] for i in order], values[order]
    heads = ["chance", *map(wrapped, names(own, probes))]
    with style():
        longest = max(len(line) for head in heads for line in head.split("\n"))
        figure, axes = new_axes(0.3 + 0.075 * longest + 0.235 * len(rows))
        axes.pcolormesh(values, cmap="Blues", vmin=0, vmax=100, edgecolors=SURFACE, linewidth=1.5)
        axes.invert_yaxis()
        middle = np.arange(len(rows)) + 0.5
        told = [f"{titles[row]} ({row})" if titles.get(row) else row for row in rows]
        axes.set_yticks(middle, told, size=9)
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


def points_of(benchmark: str, own: pl.DataFrame, sheet: Sheet) -> tuple[list[Point], float | None]:
    """Our probes of one benchmark, the published models where it is of their design, and chance."""
    size = {
        (r["method"], r["model"]): r["value"]
        for r in own.filter(metric="parameters").iter_rows(named=True)
    }
    points = []
    if benchmark in COMPARABLE:
        printed = own.filter(metric="accuracy", method="published").iter_rows(named=True)
        points += [Point(r, size["published", r["model"]], r["slice"]) for r in printed]
    whole = _whole(own, "accuracy").filter(benchmark=benchmark)
    rows = [r for r in whole.iter_rows(named=True) if ("", r["model"]) in size]
    for row, name in zip(rows, names(own, rows), strict=True):
        model = sheet[row["model"]]
        control = model["source"].startswith("control:")
        points.append(Point(row, size["", row["model"]], model["kind"], control, name))
    random = whole.filter(model="random")
    return points, random["value"][0] if random.height else None


def _reliable(own: pl.DataFrame) -> dict[tuple[str, ...], list[tuple[Row, Row]]]:
    """Per probe, in order of the bins, the numbers of OF_BINS under the paper's own reduction."""
    rows = own.filter(pl.col("metric").is_in(OF_BINS), ~pl.col("setting").str.contains("reduction"))
    found: dict[tuple[str, ...], dict[float, dict[str, Row]]] = {}
    for row in rows.iter_rows(named=True):
        at = float(json.loads(row["setting"])["bin"])
        key = tuple(row[d] for d in ("model", "prompt", "method"))
        found.setdefault(key, {}).setdefault(at, {})[row["metric"]] = row
    return {
        key: [(bins[at][OF_BINS[0]], bins[at][OF_BINS[1]]) for at in sorted(bins)]
        for key, bins in found.items()
    }


def reliability_plot(
    told: Mapping[tuple[str, ...], Sequence[tuple[Row, Row]]], own: pl.DataFrame, sheet: Sheet
) -> Figure:
    """Accuracy against mean confidence, a line per probe."""
    shown = names(own, [pairs[0][0] for pairs in told.values()])
    with style():
        figure, axes = new_axes(3.9)
        axes.plot([0, 100], [0, 100], color=INK, linewidth=1, linestyle=(0, (4, 3)))
        lines = []
        for (key, pairs), dashes in zip(told.items(), itertools.cycle(DASHES), strict=False):
            colour, marker = KINDS[sheet[key[0]]["kind"]]
            x = [sure["value"] for _, sure in pairs]
            y = [right["value"] for right, _ in pairs]
            most = max(right["n"] for right, _ in pairs)
            area = [12 + 70 * right["n"] / most for right, _ in pairs]
            axes.scatter(x, y, s=area, color=colour, marker=marker, zorder=3)
            lines += axes.plot(x, y, color=colour, linewidth=1.4, linestyle=dashes)
        axes.set_xlim(-2, 102)
        axes.set_ylim(-2, 102)
        axes.set_xlabel("mean confidence, %")
        axes.set_ylabel("accuracy, %")
        axes.grid()
        figure.legend(lines, shown, loc="outside upper center", ncols=2, columnspacing=1.2)
        return figure


def _sliced(benchmark: str, own: pl.DataFrame, sheet: Sheet) -> Iterator[Drawn]:
    """A figure for every slice of a benchmark that has more than one bin."""
    for one in SLICES:
        if len(bins := shown(one, own)) > 1:
            yield Drawn(
                benchmark,
                f"bear_slice_{one.name}_{benchmark}",
                f"Accuracy by {one.title}",
                SLICED,
                slice_plot(one, bins, own, sheet),
                own.filter(pl.col("slice").is_in(list(bins)), metric="accuracy", group=""),
            )


def slice_plot(one: Slice, bins: Mapping[str, str], own: pl.DataFrame, sheet: Sheet) -> Figure:
    """Accuracy of every probe in every bin (as in RESULTS -> as printed), with what it reaches
    without the subject, and chance. Bins that have an order are joined by lines."""
    rows = own.filter(pl.col("slice").is_in(list(bins)), metric="accuracy", group="")
    asked, chance = rows.filter(pl.col("model").is_in(list(sheet))), rows.filter(model="random")
    key = ["model", "prompt", "method"]
    probes = asked.unique(key, maintain_order=True).rows(named=True)
    blind = json.dumps({"without": SUBJECT})
    with style():
        figure, axes = new_axes(3.9)
        lines = []
        for number, (probe, dashes) in enumerate(
            zip(probes, itertools.cycle(DASHES), strict=False)
        ):
            mine = asked.filter(**{name: probe[name] for name in key})
            at = _placed(mine.filter(setting="{}"), bins, number, len(probes))
            look = _look(sheet[probe["model"]], dashes if one.edges else "")
            for x, row in at.items():
                bar = error_bar(row)
                axes.errorbar(x, row["value"], yerr=bar, color=look["color"], linewidth=1)
            lines += axes.plot(list(at), [row["value"] for row in at.values()], **look)
            floor = _placed(mine.filter(setting=blind), bins, number, len(probes))
            crosses = look | {"marker": "x", "linestyle": ""}
            axes.plot(list(floor), [row["value"] for row in floor.values()], **crosses)
        places = {name: place for place, name in enumerate(bins)}
        for name, value in chance.select("slice", "value").rows():
            ends = [places[name] - 0.4, places[name] + 0.4]
            axes.plot(ends, [value, value], color=INK, lw=1, ls=(0, (3, 2)))
        counts = dict(chance.select("slice", "n").rows())
        told = [f"{value}\nn = {counts[name]:,}" for name, value in bins.items()]
        axes.set_xticks(range(len(bins)), told, size=9)
        axes.set_xlabel(one.axis)
        axes.set_ylabel("accuracy, %")
        axes.set_ylim(-3, 103)
        axes.grid(axis="y")
        heads = names(own, probes)
        figure.legend(lines, heads, loc="outside upper center", ncols=2, columnspacing=1.2)
        return figure


def _look(model: Mapping[str, str], dashes: Any) -> dict[str, Any]:
    """How the points of a model are drawn; those of control models are hollow."""
    colour, marker = KINDS[model["kind"]]
    face = SURFACE if model["source"].startswith("control:") else colour
    look = {"color": colour, "marker": marker, "markersize": 6, "markerfacecolor": face}
    return {**look, "markeredgewidth": 1.4, "linewidth": 1.4, "linestyle": dashes, "zorder": 3}


def _placed(rows: pl.DataFrame, bins: Mapping[str, str], number: int, of: int) -> dict[float, Row]:
    """Where on the axis -> the row of RESULTS, in order; probe `number` of all stands beside the
    others."""
    aside = 0.6 * ((number + 0.5) / of - 0.5)
    found = {row["slice"]: row for row in rows.iter_rows(named=True)}
    return {place + aside: found[name] for place, name in enumerate(bins) if name in found}


def size_plot(points: Sequence[Point], chance: float | None) -> Figure:
    """Accuracy against parameters: our probes with their 95 % intervals and names, the published
    points in grey with one standard error. `chance` in per cent."""
    with style():
        figure, axes = new_axes(3.9)
        seen = _draw_points(axes, points)
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
        _label_points(figure, axes, points)
        figure.legend(
            seen.values(), seen.keys(), loc="outside upper center", ncols=3, columnspacing=1.2
        )
        return figure


def _draw_points(axes: Axes, points: Sequence[Point]) -> dict[str, Any]:
    """All points with their intervals; legend label -> what was drawn first."""
    seen: dict[str, Any] = {}
    for point in points:
        colour, marker = KINDS[point.kind]
        label = f"{point.kind}{', control' if point.is_control else ''}"
        face = SURFACE if point.is_control else colour
        look: dict[str, Any] = {"markerfacecolor": face, "markeredgewidth": 1.6, "zorder": 3}
        look |= {"color": colour, "markersize": 7, "linewidth": 1.6}
        if not point.name:
            label = f"published, {point.kind}"
            look = {"color": PUBLISHED, "markersize": 5, "linewidth": 1, "zorder": 2}
        at, bars = (point.parameters, point.row["value"]), error_bar(point.row)
        seen.setdefault(label, axes.errorbar(*at, yerr=bars, marker=marker, **look))
    return seen


def _label_points(figure: Figure, axes: Axes, points: Sequence[Point]) -> None:
    """Write each model's name beside its point, at the first place that is free of other points.

    Published points may be written over when no place is free; other names and own points not.
    """
    figure.draw_without_rendering()
    own = [point for point in points if point.name]
    hard = [_extent(axes, point) for point in own]
    soft = [_extent(axes, point) for point in points if not point.name]
    frame = axes.get_window_extent()
    near = [(dx, dy) for dy in (0, 9, -9, 16, -16) for dx in (8, -8)]
    far = [(dx, dy) for dy in (27, -27, 40, -40, 54, -54) for dx in (8, -8)]
    for point in own:
        at = (point.parameters, point.row["value"])
        for obstacles, place in (
            (o, p) for places in (near, far) for o in (hard + soft, hard) for p in places
        ):
            text = _annotate(axes, point.name, at, place)
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
            inside &= frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in obstacles):
                hard.append(box)
                if abs(place[1]) > 16:  # far away: a line leads to the point
                    text.remove()
                    line = {"relpos": (float(place[0] < 0), 0.5), **LEADER}
                    _annotate(axes, point.name, at, place, arrowprops=line)
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


def _extent(axes: Axes, point: Point) -> Bbox:
    """The box of a point with its interval, in display coordinates."""
    x, score = point.parameters, point.row
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
