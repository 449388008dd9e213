"""Figures of the nine benchmarks: partial scores (3), frequent patterns (4), popularity (5)."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import altair as alt
import polars as pl

from kgprobe.tables.attributes import views
from kgprobe.tables.attributes.numbers import BIN, PARTIAL, VALUE
from kgprobe.tables.attributes.published import NAMES
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.draw import COLOURS, INK, MUTED, TAUGHT, UNTAUGHT

#: model and method
Who = tuple[str, str]


def partial_plot(results: pl.DataFrame, kinds: Mapping[Who, str]) -> draw.Chart:
    """Partial score (bar, with interval) and full score (line across) per benchmark and model, in
    the order of `kinds`."""
    printed, sign = views.PARTIAL.of(results), marks.signs(results)
    asked, points = [model for model, _ in kinds], []
    for benchmark, who in product(dict.fromkeys(row[0] for row in printed.rows), kinds):
        part = printed.cells.get(((benchmark, *who), (PARTIAL,)))
        if part is not None:
            full = printed.cells.get(((benchmark, *who), (VALUE,)), {}).get("value")
            probe = who[0] + sign(part) + f", {who[1]}" * (asked.count(who[0]) > 1)
            points.append(draw.point(part, probe=probe, benchmark=benchmark, full=full))
    apart = draw.apart(dict.fromkeys(point["probe"] for point in points))
    look = {name: color for name, (color, *_) in apart.items()}
    y = alt.Y("benchmark:N", sort=None, title=None, scale=alt.Scale(paddingInner=0.25))
    offset = alt.YOffset("probe:N", sort=list(look))
    x = draw.numbers(alt.X, "partial score @1, %", (0, 100))
    base = draw.chart(points, "benchmark", "full", by="probe").encode(y=y, yOffset=offset)
    full = base.transform_filter("isValid(datum.full)").mark_tick(color=INK, thickness=2)
    return draw.filtered(draw.sized(
        base.mark_bar().encode(x=x("value:Q"), color=draw.told(alt.Color, "probe", look)),
        draw.intervals(base, x=x).encode(color=alt.value(MUTED)), full.encode(x=x("full:Q")),
        height=17 * len(look) * len({p["benchmark"] for p in points}),
    ))  # fmt: skip


def patterns_plot(
    results: pl.DataFrame, models: Mapping[str, Sequence[Who]], titles: Mapping[str, str]
) -> draw.Chart:
    """The most frequent patterns: metric @1 of the largest model and of the best one (`models`, by
    benchmark); `titles`: relation -> name. What is undefined is a word, never a bar of zero."""
    printed, look = views.PATTERNS.of(results), {"largest model": TAUGHT, "best model": UNTAUGHT}
    found: dict[str, list[dict[str, Any]]] = {}
    for benchmark, pattern in printed.rows:
        for which, who in zip(look, models.get(benchmark, ()), strict=False):
            cell = printed.cells.get(((benchmark, pattern), who))
            if cell is not None:
                told = "{numerator:g}/{denominator:g}".format(**cell) + marks.few(cell)
                found.setdefault(benchmark, []).append(draw.point(
                    cell, model=who[0], pattern=_pattern(pattern, titles), which=which,
                    at=cell["value"] or 0, told=told if cell["value"] is not None else "undef",
                ))  # fmt: skip
    panels = [_patterns(name, own, look, name == list(found)[-1]) for name, own in found.items()]
    return draw.filtered(*panels, by="which")


def _patterns(
    benchmark: str, points: Sequence[Mapping[str, Any]], look: Mapping[str, str], is_last: bool
) -> draw.Chart:
    """The patterns of one benchmark; the last one of all has the axis."""
    # one width for the names of all benchmarks
    names = alt.Axis(labelLimit=200, minExtent=200, maxExtent=200)
    title = "metric @1, %; numerator / denominator" if is_last else None
    ticks = {"values": [*range(0, 101, 20)], "labels": is_last, "ticks": is_last}
    x = draw.numbers(alt.X, title, (0, 118), **ticks)
    base = draw.chart(points, "model", "pattern", by="which").encode(
        y=alt.Y("pattern:N", sort=None, title=None, axis=names),
        yOffset=alt.YOffset("which:N", scale=alt.Scale(domain=list(look))),
    )
    head = alt.Title(benchmark, anchor="start", fontSize=12, color=INK)
    return alt.layer(
        base.mark_bar().encode(x=x("value:Q"), color=draw.told(alt.Color, "which", look)),
        base.mark_text(align="left", dx=3, color=MUTED).encode(x=x("at:Q"), text="told:N"),
        title=head, width=draw.WIDTH - 215, height={"step": 14},
    )  # fmt: skip


def _pattern(pattern: str, titles: Mapping[str, str]) -> str:
    """A pattern with the names of its relations, shortened."""
    name = titles.get(pattern, "")
    shown = f"{name} ({pattern})" if name else pattern
    return shown if len(shown) <= 34 else f"{shown[:33]}…"


def popularity_plot(results: pl.DataFrame, who: Who) -> draw.Chart:
    """Density over popularity of all examples and of those fully right, per benchmark."""
    shown = views.POPULARITY.chosen(results.filter(model=who[0], method=who[1]))
    sign, look = marks.signs(results), {"all": TAUGHT, "right": COLOURS[1]}
    points: list[dict[str, Any]] = []
    heads: list[str] = []
    for name in (name for name in NAMES if name in set(shown["benchmark"])):
        rows, told, own = shown.filter(benchmark=name), [], []
        for metric, label in zip(("examples", "examples right"), look, strict=True):
            found = rows.filter(metric=metric).select("bin", "value").rows()
            bins = sorted((float(edge), value) for edge, value in found)
            total = sum(value for _, value in bins)
            told.append(f"{label} n = {total:g}")
            line = [(bins[0][0] - BIN, 0), *bins, (bins[-1][0] + BIN, 0)] if total else []
            own += [(label, edge, value / total / BIN, value) for edge, value in line]
        heads.append(f"{name}: {who[0]}{sign(rows.row(0, named=True))}; {', '.join(told)}")
        keys = ("examples", "at", "density", "n")
        points += [{**dict(zip(keys, o, strict=True)), "benchmark": heads[-1]} for o in own]
    below = "log10 of the mean number of statements of an example's entities"
    dashes = draw.told(alt.StrokeDash, "examples", {"all": [1, 0], "right": [5, 3]})
    steps = draw.chart(points, by="examples").mark_line(interpolate="step-after").encode(
        x=alt.X("at:Q", title=below), y=alt.Y("density:Q"), strokeDash=dashes,
        color=draw.told(alt.Color, "examples", look),
    )  # fmt: skip
    head = alt.Header(labelAnchor="start", labelOrient="top")
    rows = steps.properties(width=430, height=120).facet(
        row=alt.Row("benchmark:N", sort=heads, title=None, header=head), spacing=10
    )
    return draw.filtered(rows, by="examples")
