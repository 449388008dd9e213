"""Figures of scored options, for any benchmark: accuracy by confidence (reliability: Guo et al.
2017), and accuracy by slice of the items."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from kgprobe.contracts import SETTING, WITHOUT
from kgprobe.tables.confidence import OF_BINS
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.section import Drawing, drawing
from kgprobe.tables.slices import SLICES, Slice, list_bins

#: benchmark and group -> RESULTS
Panels = Mapping[tuple[str, str], pl.DataFrame]
#: points of a probe: full questions, and without the subject
ASKED = ("", WITHOUT[0])
RELIABILITY = (
    "Answers in ten bins of confidence; larger points have more answers. On the dashed line, "
    "confidence equals accuracy."
)
CAPTION = (
    "With 95 % intervals, within each bin in the order of the legend; hollow: control models; "
    "crosses: no-subject baseline; horizontal lines: chance; n: items."
)
#: line breaks of a label
LINES = "split(datum.label, '\\n')"
CROSS = "M-.7,-.7L.7,.7M.7,-.7L-.7,.7"


def drawings(
    paper: str,
    part: str,
    results: pl.DataFrame,
    kinds: Mapping[str, str],
    panels: Iterable[tuple[str, str]],
    aggregation: str = "",
    controls: Collection[str] = (),
) -> Iterator[Drawing]:
    """Draw the reliability plot, and a figure for every slice, with a panel for each benchmark and
    group for which RESULTS have bins (for a slice, more than one); nothing without any.

    `part`: their section of the report; figures of slices are collapsed except those of one
    benchmark. `kinds`: kind of model by name; `aggregation`: the probes' own, "" if unnamed;
    `controls`: names of control models.
    """
    figure = partial(_figure, marks.signs(results), kinds)
    end, is_folded = [part] * (part != paper), part == paper
    probed = results.filter(pl.col("model").is_in([*kinds, "random"]), aggregation=aggregation)
    sure = probed.filter(metric=OF_BINS[1])
    key = ["benchmark", "group", *marks.WHO, "bin"]
    right = probed.filter(metric=OF_BINS[0]).join(
        sure.select(*key, sure="value"), on=key, maintain_order="left"
    )
    of_panel = {panel: {"benchmark": panel[0], "group": panel[1]} for panel in panels}
    binned = {panel: right.filter(**of) for panel, of in of_panel.items()}
    if binned := {panel: rows for panel, rows in binned.items() if rows.height}:
        name = "_".join([paper, "reliability", *end])
        data = probed.filter(pl.col("metric").is_in(OF_BINS)).join(
            pl.concat(binned.values()), on=key, how="semi", maintain_order="left"
        )
        drawn = figure(binned, _reliability, 300, (110, 110))
        yield drawing(part, name, "Confidence and accuracy", RELIABILITY, drawn, data)
    # groups of items and relations are both groups: the requested panels determine which
    measured = probed.filter(
        *(pl.col(name) == "" for name in SETTING if name not in ("aggregation", "without")),
        pl.col("without").is_in(ASKED),
        metric="accuracy",
    )
    by_panel = {panel: measured.filter(**of) for panel, of in of_panel.items()}
    for one in SLICES:
        bins = {panel: list_bins(one, rows) for panel, rows in by_panel.items()}
        shown = {
            panel: rows.filter(pl.col("slice").is_in(list(bins[panel])))
            for panel, rows in by_panel.items()
            if len(bins[panel]) > 1
        }
        if shown:
            drawn = figure(shown, partial(_slice, one), 280, (118, 110), controls)
            name = "_".join([paper, "slice", one.name, *end])
            title, rows = f"Accuracy by {one.title}", pl.concat(shown.values())
            yield drawing(part, name, title, CAPTION, drawn, rows, is_folded)


def _figure(
    sign: Callable[[Mapping[str, Any]], str],
    kinds: Mapping[str, str],
    panels: Panels,
    layers: Callable[..., list[alt.Chart]],
    height: float,
    small: tuple[int, int],
    hollow: Collection[str] = (),
) -> draw.Chart:
    """Draw one panel of this height, or several small titled ones of this width and height, three
    per row, with one legend of their probes; points of the models in `hollow` are hollow. `layers`:
    a function of the legend, of the rows of a panel, and of whether it is small."""
    probes = pl.concat(panels.values()).filter(pl.col("model").is_in(list(kinds)))
    names = marks.legend(probes.rows(named=True), sign)
    models = {name: who[0] for who, name in names.items()}
    look = draw.probes(
        {name: kinds[model] for name, model in models.items()},
        [name for name, model in models.items() if model in hollow],
    )
    if len(panels) == 1:
        (rows,) = panels.values()
        return draw.set_size(*layers(names, look, rows, False), height=height)
    titles, (width, low) = marks.panels(panels), small
    drawn = [
        alt.layer(*layers(names, look, rows, True)).properties(
            width=width, height=low, title=titles[panel]
        )
        for panel, rows in panels.items()
    ]
    return alt.concat(*drawn, columns=3, spacing=8)


def _reliability(
    names: Mapping[marks.Who, str], look: Mapping[str, Any], rows: pl.DataFrame, is_small: bool
) -> list[alt.Chart]:
    """Plot accuracy against mean confidence, a line per probe."""
    points = [
        draw.point(row, probe=names[tuple(row[d] for d in marks.WHO)], sure=row["sure"])
        for row in rows.rows(named=True)
    ]
    x = draw.numbers(alt.X, "mean confidence, %", draw.PER_CENT)("sure:Q")
    y = draw.numbers(alt.Y, "accuracy, %", draw.PER_CENT)
    base = draw.chart(points, "probe", "sure").encode(x=x)
    _, lines, dots = draw.lines(base, y, look)
    size = alt.Size("n:Q", scale=alt.Scale(type="linear", zero=True, range=[15, 110]), legend=None)
    ends = alt.Chart(alt.InlineData(values=[{"sure": e, "value": e} for e in draw.PER_CENT]))
    same = ends.mark_line(stroke=draw.INK, strokeWidth=1, strokeDash=[4, 3])
    return [lines, dots.encode(size=size), same.encode(x=x, y=y("value:Q"))]


def _slice(
    one: Slice,
    names: Mapping[marks.Who, str],
    look: Mapping[str, Any],
    rows: pl.DataFrame,
    is_small: bool,
) -> list[alt.Chart]:
    """Plot the accuracy of every probe in every bin of a slice, with its accuracy without the
    subject, and chance; ordered bins are joined by lines. Labels of a small panel are vertical."""
    chance = rows.filter(model="random")
    counts = dict(chance.select("slice", "n").rows())
    heads = {
        name: f"{value} (n {counts[name]:,})" if is_small else f"{value}\nn = {counts[name]:,}"
        for name, value in list_bins(one, rows).items()
    }
    points: dict[str, list[dict[str, Any]]] = {without: [] for without in ASKED}
    for row in rows.rows(named=True):
        if row["model"] != "random":
            name = names[tuple(row[d] for d in marks.WHO)]
            points[row["without"]].append(draw.point(row, probe=name, bin=heads[row["slice"]]))
    turned = {"labelAngle": -90} if is_small else {"labelAngle": 0, "labelExpr": LINES}
    title = None if is_small else one.axis
    x = alt.X("bin:N", sort=list(heads.values()), title=title, axis=alt.Axis(**turned))
    y = draw.numbers(alt.Y, "accuracy, %", draw.PER_CENT)
    aside = alt.XOffset("probe:N", scale=alt.Scale(domain=list(names.values())))
    base, baseline = (
        draw.chart(data, "probe", "bin").encode(x=x, xOffset=aside) for data in points.values()
    )
    bars, lines, dots = draw.lines(base, y, look)
    size = {"size": alt.value(28)} if is_small else {}
    crosses = baseline.mark_point(shape=CROSS).encode(y=y("value:Q"), stroke=look["stroke"], **size)
    by_chance = [draw.point(r, bin=heads[r["slice"]]) for r in chance.rows(named=True)]
    level = draw.chart(by_chance).mark_tick(color=draw.INK, orient="horizontal")
    joined = [lines] if one.edges else []
    return [bars, *joined, dots.encode(**size), crosses, level.encode(x=x, y=y("value:Q"))]
