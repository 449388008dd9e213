"""BEAR's figures from RESULTS: accuracy against size, by relation, and on trained-on facts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import altair as alt
import polars as pl

from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import reliability, slice_plots
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.draw import HELD_OUT, INK, KINDS, MUTED, PUBLISHED, SURFACE, TRAINED_ON
from kgprobe.tables.report.section import Drawn
from kgprobe.tables.results import plain

Row = Mapping[str, Any]
Sheet = Mapping[str, Mapping[str, str]]
#: Benchmarks of the released design and size, beside which the published points are drawn.
COMPARABLE = ("bear_released", "bear_lite")
SIZES = "Lines are 95 % intervals; hollow: control models."
COMPARED = (
    " Gray: published scores of the complete released set over three templates, with one standard"
    " error over templates."
)
#: lines of a label
LINES = "split(datum.label, '\\n')"
SIZE = "parameters (log scale)"
#: of the figure of sizes, in pixels, and of a letter of its names
PLOT, LETTER = (430, 280), 6.0
#: pixels below and right of its point that a name may stand, the best first
ASIDE = list(product((0, 11, -11, 18, -18, 30, -30, 44, -44, 60, -60), (9, -9)))


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
    bear = results.filter(paper="bear")
    if bear.filter(metric="trained-on").height:
        yield Drawn(
            "validity",
            "validity",
            "Trained-on and held-out facts",
            "Items whose correct option is ranked first, with 95 % intervals; black: chance.",
            calibration_plot(bear),
            _whole(bear, "trained-on", "held-out", "chance", "AUC"),
        )
    kinds = {name: row["kind"] for name, row in sheet.items()}
    controls = [name for name, row in sheet.items() if row["source"].startswith("control:")]
    for benchmark in benchmarks(bear, sheet):
        # verdicts that are signs of a model name no benchmark
        with_verdicts = bear.filter(pl.col("benchmark").is_in([benchmark, ""]))
        points, chance = points_of(benchmark, bear, sheet)
        if any(point.name for point in points):
            caption = SIZES + (COMPARED if benchmark in COMPARABLE else "")
            title, figure = "Accuracy against size", size_plot(points, chance)
            rows = pl.DataFrame([point.row for point in points], schema=bear.schema)
            yield Drawn(benchmark, f"bear_size_{benchmark}", title, caption, figure, rows)
        yield Drawn(
            benchmark,
            f"bear_relations_{benchmark}",
            "Accuracy by relation",
            "Per cent, mean over templates; relations ordered by their mean over models.",
            relations_plot(with_verdicts, sheet, titles),
            _related(bear.filter(benchmark=benchmark)),
        )
        yield from reliability.draw_reliability(
            benchmark, f"bear_reliability_{benchmark}", bear, kinds, [(benchmark, "")]
        )
        yield from slice_plots.draw_slices(
            "bear", benchmark, bear, kinds, [(benchmark, "")], controls=controls
        )


def benchmarks(results: pl.DataFrame, sheet: Sheet) -> list[str]:
    """The benchmarks that a model of the sheet answered."""
    answered = results.filter(pl.col("model").is_in(list(sheet)), metric="accuracy")
    return answered["benchmark"].unique(maintain_order=True).to_list()


def names(results: pl.DataFrame, rows: Sequence[Row]) -> list[str]:
    """The name of the probe of each row of RESULTS, with the signs of its numbers."""
    return marks.names(rows, [*map(marks.signs(results), rows)])


def _whole(results: pl.DataFrame, *metrics: str) -> pl.DataFrame:
    """The numbers of all items, mean over templates."""
    rows = results.filter(pl.col("metric").is_in(metrics), pl.col("method") != "published")
    return rows.filter(plain(), group="", slice="")


def _related(results: pl.DataFrame) -> pl.DataFrame:
    """The accuracies of relations, mean over templates."""
    return results.filter(pl.col("group") != "", plain(), metric="accuracy", slice="")


def calibration_plot(results: pl.DataFrame) -> draw.Chart:
    """Accuracy on trained-on and held-out facts with 95 % intervals, chance, and AUC, per probe."""
    by_probe: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in _whole(results, "trained-on", "held-out", "chance", "AUC").iter_rows(named=True):
        key = tuple(row[d] for d in ("benchmark", "model", "prompt", "method"))
        by_probe.setdefault(key, {})[row["metric"]] = row
    points: list[dict[str, Any]] = []
    areas: list[dict[str, Any]] = []
    shown = names(results, [cells["trained-on"] for cells in by_probe.values()])
    for name, cells in zip(shown, by_probe.values(), strict=True):
        for half in ("trained-on", "held-out"):
            more = {"probe": name, "facts": f"{half} facts", "chance": cells["chance"]["value"]}
            points.append(draw.point(cells[half], **more))
        area = "AUC {value:.2f} ({low:.2f} to {high:.2f})".format(**cells["AUC"])
        area += marks.few(cells["AUC"])
        areas.append(draw.point(cells["AUC"], probe=name, facts="", label=area))
    look = {"trained-on facts": TRAINED_ON, "held-out facts": HELD_OUT}
    # what a probe is called stands above its bars, as a bar of its own
    offset = alt.YOffset("facts:N", scale=alt.Scale(domain=["", *look], paddingInner=0.1))
    y = alt.Y("probe:N", sort=shown, axis=None, scale=alt.Scale(paddingInner=0.15))
    x = draw.numbers(alt.X, "items ranked first, %", draw.PER_CENT)
    bars = draw.chart(points, "facts", "probe").encode(y=y, yOffset=offset)
    labels = draw.chart(areas, "probe").encode(y=y, yOffset=offset)
    return alt.layer(
        bars.mark_bar().encode(x=x("value:Q"), color=draw.encode(alt.Color, "facts", look)),
        draw.intervals(bars, x=x),
        bars.mark_tick(color=INK, thickness=2, bandSize=22).encode(x=x("chance:Q")),
        labels.mark_text(align="left", fontWeight="bold").encode(x=alt.value(2), text="probe:N"),
        labels.mark_text(align="right", color=MUTED).encode(x=alt.value("width"), text="label:N"),
    ).properties(width=draw.WIDTH - 30, height={"step": 24})  # fmt: skip


def relations_plot(results: pl.DataFrame, sheet: Sheet, titles: Mapping[str, str]) -> draw.Chart:
    """Accuracy per relation (rows) and probe (columns) of one benchmark, and chance.

    Relations are ordered by mean accuracy over the probes.
    """
    table = _related(results)
    key = ["model", "prompt", "method"]
    probed = table.filter(pl.col("model").is_in(list(sheet)))
    probes = probed.unique(key, maintain_order=True).rows(named=True)
    order = probed.group_by("group").agg(ordered_mean("value")).sort(-pl.col("value"), "group")
    named = {r: f"{titles[r]} ({r})" if titles.get(r) else r for r in order["group"]}
    # names have room beside each other, or stand upright on one line
    is_wide = len(probes) < 3
    columns = {("random", "", ""): "chance"}
    columns |= {
        tuple(p[k] for k in key): draw.wrap_name(name) if is_wide else name
        for p, name in zip(probes, names(results, probes), strict=True)
    }
    cells = [
        draw.point(row, probe=columns[who], relation=named[row["group"]],
                   label="" if row["value"] is None else f"{row['value']:.0f}{marks.few(row)}")
        for row in table.rows(named=True)
        if (who := tuple(row[k] for k in key)) in columns
    ]  # fmt: skip
    bare = alt.Axis(ticks=False, domain=False)
    turned = {"labelAngle": 0} if is_wide else {"labelAngle": -90, "labelOverlap": "greedy"}
    top = alt.Axis(orient="top", labelExpr=LINES, ticks=False, domain=False, **turned)
    base = draw.chart(cells, "probe", "relation").encode(
        x=alt.X("probe:N", sort=list(columns.values()), title=None, axis=top),
        y=alt.Y("relation:N", sort=list(named.values()), title=None, axis=bare),
    )
    cells_, words = draw.heat(base, "label:N", 100)
    layers = [cells_, words] if len(columns) <= 12 else [cells_]
    return draw.set_size(*layers, height=22 * len(named))


def points_of(benchmark: str, bear: pl.DataFrame, sheet: Sheet) -> tuple[list[Point], float | None]:
    """Our probes of one benchmark, the published models where it is of their design, and chance."""
    size = {
        (r["method"], r["model"]): r["value"]
        for r in bear.filter(metric="parameters").iter_rows(named=True)
    }
    points = []
    if benchmark in COMPARABLE:
        printed = bear.filter(metric="accuracy", method="published").iter_rows(named=True)
        points += [Point(r, size["published", r["model"]], r["slice"]) for r in printed]
    whole = _whole(bear, "accuracy").filter(benchmark=benchmark)
    rows = [r for r in whole.iter_rows(named=True) if ("", r["model"]) in size]
    for row, name in zip(rows, names(bear, rows), strict=True):
        model = sheet[row["model"]]
        control = model["source"].startswith("control:")
        points.append(Point(row, size["", row["model"]], model["kind"], control, name))
    random = whole.filter(model="random")
    return points, random["value"][0] if random.height else None


def size_plot(points: Sequence[Point], chance: float | None) -> draw.Chart:
    """Accuracy against parameters: our probes with their 95 % intervals and names, the published
    points in gray with one standard error. `chance` in per cent."""
    sizes, tops = [p.parameters for p in points], [p.row["high"] or p.row["value"] for p in points]
    domains = [min(sizes) / 2, max(sizes) * 2], [0, min(1.15 * max(tops), 100)]
    rows, looks = [], dict[str, draw.Look]()
    for point, place in zip(points, place_names(points, *domains), strict=True):
        color, shape = KINDS[point.kind]
        label = point.kind + ", control" * point.is_control
        look = (color, SURFACE if point.is_control else color, shape)
        if not point.name:
            label, look = f"published, {point.kind}", (PUBLISHED, PUBLISHED, shape)
        looks.setdefault(label, look)
        more = {"model": point.name or point.row["model"], "name": point.name}
        rows.append(draw.point(point.row, **more, parameters=point.parameters, kind=label, **place))
    shown = "replace(replace(format(datum.value, '~s'), 'G', 'B'), /([a-zA-Z])/, ' $1')"
    ticks = [step * 10**power for power in range(3, 14) for step in (1, 3)]
    x = alt.X("parameters:Q", title=SIZE, axis=alt.Axis(labelExpr=shown, values=ticks),
              scale=alt.Scale(type="log", domain=domains[0], nice=False))  # fmt: skip
    y = draw.numbers(alt.Y, "accuracy, %", domains[1])
    base = draw.chart(rows, "kind", "model", "parameters").encode(x=x)
    bars, _, marks = draw.lines(base, y, draw.encode_points("kind", looks, columns=3))
    at = base.transform_filter("datum.side").encode(x=alt.X("at:Q", title=SIZE), y=y("up:Q"))
    halo = at.mark_text(align=alt.expr("datum.side"), stroke=SURFACE, strokeWidth=3)
    words = at.mark_text(align=alt.expr("datum.side"))
    leaders = at.transform_filter("datum.far").mark_rule(color=MUTED, strokeWidth=0.7)
    level = alt.Chart(alt.InlineData(values=[{"value": chance}] if chance is not None else []))
    return alt.layer(
        bars, leaders.encode(x2="parameters", y2="value"), marks,
        level.mark_rule(color=INK, strokeWidth=1, strokeDash=[4, 3]).encode(y=y("value:Q")),
        halo.encode(text="name:N"), words.encode(text="name:N"),
    ).properties(width=PLOT[0], height=PLOT[1])  # fmt: skip


Box = tuple[float, float, float, float]


def place_names(
    points: Sequence[Point], across: Sequence[float], up: Sequence[float]
) -> list[dict[str, Any]]:
    """Where each name stands beside its point, in the units of the axes with these ends: the first
    place that is free of other points. Published points, which have no name, may be written over
    where no place is free; names and points with one not."""

    def pixels(point: Point, value: float) -> tuple[float, float]:
        share = math.log(point.parameters / across[0]) / math.log(across[1] / across[0])
        return PLOT[0] * share, PLOT[1] * (1 - value / up[1])

    def box(point: Point) -> Box:
        row = point.row
        x, y = pixels(point, row["value"])
        high, low = (
            pixels(point, row[k] if row[k] is not None else row["value"])[1]
            for k in ("high", "low")
        )
        return x - 6, min(high, y - 6), x + 6, max(low, y + 6)

    hard = [box(point) for point in points if point.name]
    soft = [box(point) for point in points if not point.name]
    places: list[dict[str, Any]] = []
    for point in points:
        places.append({})
        for obstacles, (dy, dx) in product((hard + soft, hard), ASIDE if point.name else ()):
            x, y = pixels(point, point.row["value"])
            x, y, wide = x + dx, y + dy, math.copysign(LETTER * len(point.name), dx)
            area = min(x, x + wide), y - 6, max(x, x + wide), y + 6
            is_inside = area[0] >= 0 and area[2] <= PLOT[0] and area[1] >= 0 and area[3] <= PLOT[1]
            if is_inside and not any(overlap(area, other) for other in obstacles):
                hard.append(area)
                at = across[0] * (across[1] / across[0]) ** (x / PLOT[0])
                side, value = "left" if dx > 0 else "right", up[1] * (1 - y / PLOT[1])
                places[-1] = {"at": at, "up": value, "side": side, "far": abs(dy) > 18}
                break
    return places


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes (left, upper, right, lower end) share some of the plane."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
