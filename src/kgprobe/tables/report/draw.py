"""Figures as declarative charts (Altair), rendered by the Vega in vl-convert: the same data gives
the same bytes; readable at 390 pixels and without color.

Ink, muted ink, grid and surface have distinct colors, so that the report can replace them by those
of its theme.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import altair as alt
import vl_convert

from kgprobe.schema import atomic

#: charts of all types
Chart = alt.TopLevelMixin
#: stroke, fill, shape
Look = tuple[str, str, str]
INK, MUTED, GRID, SURFACE = "#1c1c1a", "#6b6b66", "#dededa", "#fffffe"
#: Okabe and Ito's colors, and brown: gray are published figures
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
#: kind -> color, shape
KINDS = {
    name: (COLORS[place], SHAPES[place])
    for place, name in enumerate(("masked", "causal", "seq2seq", "api"))
}
TRAINED_ON, HELD_OUT, PUBLISHED = "#0072b2", "#e69f00", "#9a9a95"
#: width in CSS pixels of a figure with one panel, including labels
WIDTH = 500
#: ends of an axis of proportions
PER_CENT = (0, 100)
# the figure as a whole is described in words, and its numbers are given in a table
_SILENT = {"aria": False}
_TEXT = {**_SILENT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
         "labelColor": INK, "titleColor": INK}  # fmt: skip
CONFIG: dict[str, Any] = {
    **_SILENT,
    "background": SURFACE,
    # vl-convert includes the first, the others have the same widths: local fonts change no layout
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {**_TEXT, "grid": False, "gridColor": GRID, "domainColor": MUTED, "tickColor": MUTED,
             "labelLimit": 220},
    # by default Vega leaves out the names after the first 29
    "legend": {**_TEXT, "orient": "top", "columns": 2, "labelLimit": 230, "symbolLimit": 0},
    "header": {"labelFontSize": 12, "labelColor": INK},
    "title": _SILENT,
    "mark": _SILENT,
    "text": {"color": INK, "fontSize": 11},
    "point": {"size": 60, "opacity": 1},
    "bar": {"stroke": SURFACE},
}  # fmt: skip


def point(row: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the data of a point from a row of RESULTS: its number, the interval and n."""
    return {**{name: row[name] for name in ("value", "low", "high", "n") if name in row}, **more}


def chart(rows: Iterable[Mapping[str, Any]], *names: str) -> alt.Chart:
    """Create a chart of rows with a tooltip of the fields `names`, value, interval and n."""
    numbers = [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("value", "low", "high")]
    fields = [alt.Tooltip(f"{name}:N") for name in names]
    figure = alt.Chart(alt.InlineData(values=list(rows)))
    return figure.encode(tooltip=[*fields, *numbers, "n:Q"])


def numbers(channel: Any, title: str | None, ends: Sequence[float] = (), **ticks: Any) -> Any:
    """Return a constructor of a channel (`alt.X`, `alt.Y`) for a field: a numeric scale between
    `ends`, or over the data, with grid lines."""
    scale = alt.Scale(domain=list(ends), nice=False) if ends else alt.Scale(zero=False)
    return partial(channel, title=title, scale=scale, axis=alt.Axis(grid=True, **ticks))


def intervals(base: alt.Chart, **along: Any) -> alt.Chart:
    """Draw the intervals of rows that have one; `x` or `y` constructs the channel of a field."""
    ((name, channel),) = along.items()
    bars = base.transform_filter("isValid(datum.low)").mark_rule(color=INK, strokeWidth=1.4)
    layer: alt.Chart = bars.encode(**{name: channel("low:Q"), f"{name}2": "high"})
    return layer


def lines(base: alt.Chart, y: Any, look: Mapping[str, Any]) -> list[alt.Chart]:
    """Return layers of intervals, lines and points; `look` is from `encode_points`."""
    stroke = look["stroke"]
    joined = base.mark_line(strokeWidth=1.4).encode(y=y("value:Q"), stroke=stroke)
    points = base.mark_point().encode(y=y("value:Q"), **look)
    return [intervals(base, y=y).encode(stroke=stroke), joined, points]


def heat(base: alt.Chart, text: Any, top: float, lines: int = 1) -> list[alt.Chart]:
    """Return layers of cells, darker the closer to `top`, and the field `text` in them, in `lines`
    lines."""
    shade = alt.Color("value:Q", scale=alt.Scale(scheme="blues", domain=[0, top]), legend=None)
    dark = f"datum.value > {0.68 * top:g}"
    ink = alt.condition(dark, alt.value("#ffffff"), alt.value("#111111"))
    words = base.mark_text(lineBreak="\n", dy=-6.5 * (lines - 1)).encode(text=text, color=ink)
    return [base.mark_rect(stroke=SURFACE).encode(color=shade), words]


def encode(channel: Any, field: str, look: Mapping[str, Any], **legend: Any) -> Any:
    """Encode a field by a channel (`alt.Color`, `alt.Shape` ...): the look of each of its values,
    in the order of the legend."""
    scale = alt.Scale(domain=list(look), range=list(look.values()))
    return channel(f"{field}:N", title=None, scale=scale, legend=alt.Legend(**legend))


def encode_points(field: str, looks: Mapping[str, Look], **legend: Any) -> dict[str, Any]:
    """Encode a field by the channels of points, with one legend for all of them."""
    return {
        channel.__name__.lower(): encode(
            channel, field, {name: look[place] for name, look in looks.items()}, **legend
        )
        for place, channel in enumerate((alt.Stroke, alt.Fill, alt.Shape))
    }


def apart(names: Iterable[str]) -> dict[str, Look]:
    """Assign a color and a shape to each name; they repeat if there are too few."""
    looks = zip(itertools.cycle(COLORS), itertools.cycle(SHAPES), strict=False)
    return {n: (color, color, shape) for n, (color, shape) in zip(names, looks, strict=False)}


def probes(
    kinds: Mapping[str, str],
    hollow: Collection[str] = (),
    also: Mapping[str, Look] = MappingProxyType({}),
) -> dict[str, Any]:
    """Apply `encode_points` to the field `probe`; `kinds`: of every probe, in the legend's order.

    The first of a kind has its kind's color, the others unused ones; where these would repeat, the
    shape is one that no kind has. `hollow`: not filled; `also`: entries that follow them in the
    legend.
    """
    used = {KINDS[kind][0] for kind in kinds.values()}
    free = itertools.cycle([one for one in COLORS if one not in used] or COLORS)
    spare = itertools.cycle(itertools.product(SHAPES[len(KINDS) :], COLORS))
    looks, seen = dict[str, Look](), set[tuple[str, str]]()
    for name, kind in kinds.items():
        color, shape = KINDS[kind]
        color = next(free) if (color, shape) in seen else color
        if (color, shape) in seen:
            shape, color = next(spare)
        looks[name] = (color, SURFACE if name in hollow else color, shape)
        seen.add((color, shape))
    return encode_points("probe", looks | dict(also))


def set_size(*layers: alt.Chart, height: float) -> Chart:
    """Layer charts in one panel of this height, as wide as labels at its side allow."""
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    return alt.layer(*layers, autosize=fit, width=WIDTH, height=height)


def styled(drawn: Chart) -> Chart:
    """Configure the chart with the project's fonts and colors."""
    figure: Chart = drawn.configure(**CONFIG)
    return figure


def specification(drawn: Chart) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, in the project's style."""
    with alt.data_transformers.enable("default", max_rows=None):
        # charts are validated when they are composed, and by the renderer
        figure: dict[str, Any] = styled(drawn).to_dict(validate=False)
    # a URL, which pages do not need
    return {name: part for name, part in figure.items() if name != "$schema"}


def svg(figure: dict[str, Any]) -> str:
    """Render a specification as SVG text."""
    return str(vl_convert.vegalite_to_svg(figure, allowed_base_urls=[])) + "\n"


def save(figure: dict[str, Any], stem: str | Path) -> Path:
    """Write a specification as `<stem>.svg`."""
    path = Path(f"{stem}.svg")
    with atomic(path) as temporary:
        temporary.write_text(svg(figure), encoding="utf-8")
    return path


def wrap_name(name: str) -> str:
    """Break a long name into lines of about twenty characters, after hyphens and spaces."""
    lines = [""]
    for piece in re.findall(r"[^- ]+[- ]*|[- ]+", name):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > 20:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.strip() for line in lines)
