"""Figures as declared charts (Altair), drawn by the Vega that vl-convert carries: same data, same
bytes; readable at 390 pixels and without color.

Ink, muted ink, grid and surface have colors of their own, so that the report can exchange them for
those of its theme.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from kgprobe.schema import atomic

#: what a figure is
Chart = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.ConcatChart
    | alt.VConcatChart
    | alt.HConcatChart
)
#: stroke, fill, shape
Look = tuple[str, str, str]
INK, MUTED, GRID, SURFACE = "#1c1c1a", "#6b6b66", "#dededa", "#fffffe"
#: Okabe and Ito's colors
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
#: kind -> color, shape
KINDS = {
    name: (COLORS[place], SHAPES[place])
    for place, name in enumerate(("masked", "causal", "seq2seq", "api"))
}
TRAINED_ON, HELD_OUT, PUBLISHED = "#0072b2", "#e69f00", "#9a9a95"
#: CSS pixels: of a figure of one panel with all its words
WIDTH = 500
#: ends of an axis of shares
PER_CENT = (0, 100)
# the figure as a whole is described in words, and its numbers stand beside it as a table
_SILENT = {"aria": False}
_TEXT = {**_SILENT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
         "labelColor": INK, "titleColor": INK}  # fmt: skip
CONFIG: dict[str, Any] = {
    **_SILENT,
    "background": SURFACE,
    # vl-convert brings the first, the others are as wide: no font of the machine moves a line
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {**_TEXT, "grid": False, "gridColor": GRID, "domainColor": MUTED, "tickColor": MUTED,
             "labelLimit": 220},
    "legend": {**_TEXT, "orient": "top", "columns": 2, "labelLimit": 230},
    "header": {"labelFontSize": 12, "labelColor": INK},
    "title": _SILENT,
    "mark": _SILENT,
    "text": {"color": INK, "fontSize": 11},
    "point": {"size": 60, "opacity": 1},
    "bar": {"stroke": SURFACE},
}  # fmt: skip


def point(row: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """What a chart knows of a row of RESULTS: its number, the interval and n."""
    return {**{name: row[name] for name in ("value", "low", "high", "n") if name in row}, **more}


def chart(rows: Iterable[Mapping[str, Any]], *names: str) -> alt.Chart:
    """A chart of rows with the fields `names`, value, interval and n under the pointer."""
    numbers = [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("value", "low", "high")]
    fields = [alt.Tooltip(f"{name}:N") for name in names]
    figure = alt.Chart(alt.InlineData(values=list(rows)))
    return figure.encode(tooltip=[*fields, *numbers, "n:Q"])


def numbers(channel: Any, title: str | None, ends: Sequence[float] = (), **ticks: Any) -> Any:
    """What makes a channel (`alt.X`, `alt.Y`) of a field: a scale of numbers between `ends`, or as
    far as there are any, with lines across the chart."""
    scale = alt.Scale(domain=list(ends), nice=False) if ends else alt.Scale(zero=False)
    return partial(channel, title=title, scale=scale, axis=alt.Axis(grid=True, **ticks))


def intervals(base: alt.Chart, **along: Any) -> alt.Chart:
    """The intervals of those rows that have one; `x` or `y` makes a channel of a field."""
    ((name, channel),) = along.items()
    bars = base.transform_filter("isValid(datum.low)").mark_rule(color=INK, strokeWidth=1.4)
    layer: alt.Chart = bars.encode(**{name: channel("low:Q"), f"{name}2": "high"})
    return layer


def lines(base: alt.Chart, y: Any, look: Mapping[str, Any]) -> list[alt.Chart]:
    """Layers of intervals, lines and points; `look` as `encode_points` makes it."""
    stroke = look["stroke"]
    joined = base.mark_line(strokeWidth=1.4).encode(y=y("value:Q"), stroke=stroke)
    points = base.mark_point().encode(y=y("value:Q"), **look)
    return [intervals(base, y=y).encode(stroke=stroke), joined, points]


def heat(base: alt.Chart, text: Any, top: float, lines: int = 1) -> list[alt.Chart]:
    """Layers of cells that are the darker the nearer to `top`, and the field `text` in them,
    of so many lines."""
    shade = alt.Color("value:Q", scale=alt.Scale(scheme="blues", domain=[0, top]), legend=None)
    dark = f"datum.value > {0.68 * top:g}"
    ink = alt.condition(dark, alt.value("#ffffff"), alt.value("#111111"))
    words = base.mark_text(lineBreak="\n", dy=-6.5 * (lines - 1)).encode(text=text, color=ink)
    return [base.mark_rect(stroke=SURFACE).encode(color=shade), words]


def encode(channel: Any, field: str, look: Mapping[str, Any], **legend: Any) -> Any:
    """A channel (`alt.Color`, `alt.Shape` ...) of a field: what each of its values looks like, in
    the order of the legend."""
    scale = alt.Scale(domain=list(look), range=list(look.values()))
    return channel(f"{field}:N", title=None, scale=scale, legend=alt.Legend(**legend))


def encode_points(field: str, looks: Mapping[str, Look], **legend: Any) -> dict[str, Any]:
    """The channels of points by a field, one legend of all of them."""
    return {
        channel.__name__.lower(): encode(
            channel, field, {name: look[place] for name, look in looks.items()}, **legend
        )
        for place, channel in enumerate((alt.Stroke, alt.Fill, alt.Shape))
    }


def apart(names: Iterable[str]) -> dict[str, Look]:
    """A color and a shape for each name, as far as there are any."""
    looks = zip(itertools.cycle(COLORS), itertools.cycle(SHAPES), strict=False)
    return {n: (color, color, shape) for n, (color, shape) in zip(names, looks, strict=False)}


def probes(
    kinds: Mapping[str, str],
    hollow: Collection[str] = (),
    also: Mapping[str, Look] = MappingProxyType({}),
) -> dict[str, Any]:
    """`encode_points` by the field `probe`; `kinds`: of every probe, in the legend's order.

    The first of a kind has its kind's color, the others what is free. `hollow`: not filled;
    `also`: what follows them in the legend.
    """
    used = {KINDS[kind][0] for kind in kinds.values()}
    free = itertools.cycle([one for one in COLORS if one not in used] or COLORS)
    looks, seen = dict[str, Look](), set[str]()
    for name, kind in kinds.items():
        color = next(free) if kind in seen else KINDS[kind][0]
        looks[name] = (color, SURFACE if name in hollow else color, KINDS[kind][1])
        seen.add(kind)
    return encode_points("probe", looks | dict(also))


def in_panels(
    layers: Callable[[pl.DataFrame, bool], list[alt.Chart]],
    panels: Mapping[str, pl.DataFrame],
    height: float,
    small: tuple[int, int],
) -> Chart:
    """Rows by title: one panel that is so high, or, with their titles, small ones of this width and
    height, three in a line. `layers`: of rows, and of whether their panel is small."""
    if len(panels) == 1:
        (rows,) = panels.values()
        return set_size(*layers(rows, False), height=height)
    width, low = small
    drawn = [
        alt.layer(*layers(rows, True)).properties(width=width, height=low, title=title)
        for title, rows in panels.items()
    ]
    return alt.concat(*drawn, columns=3, spacing=8)


def set_size(*layers: alt.Chart, height: float) -> Chart:
    """Layers in one panel that is so high, as wide as names at its side leave it."""
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    return alt.layer(*layers, autosize=fit, width=WIDTH, height=height)


def styled(drawn: Chart) -> Chart:
    """The chart with the fonts and colors of the house."""
    figure: Chart = drawn.configure(**CONFIG)
    return figure


def specification(drawn: Chart) -> dict[str, Any]:
    """What Vega-Lite draws, in the style of the house."""
    with alt.data_transformers.enable("default", max_rows=None):
        # what is drawn is checked when it is composed, and by what draws it
        figure: dict[str, Any] = styled(drawn).to_dict(validate=False)
    # an address, which pages do without
    return {name: part for name, part in figure.items() if name != "$schema"}


def svg(figure: dict[str, Any]) -> str:
    """A specification as SVG text."""
    return str(vl_convert.vegalite_to_svg(figure, allowed_base_urls=[])) + "\n"


def save(figure: dict[str, Any], stem: str | Path) -> Path:
    """Write a specification as `<stem>.svg`."""
    path = Path(f"{stem}.svg")
    with atomic(path) as temporary:
        temporary.write_text(svg(figure), encoding="utf-8")
    return path


def wrap_name(name: str) -> str:
    """A long name on lines of about twenty signs, broken after hyphens and spaces."""
    lines = [""]
    for piece in re.findall(r"[^- ]+[- ]*|[- ]+", name):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > 20:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.strip() for line in lines)
