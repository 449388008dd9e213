"""A page to look around in: every principal number as a chart that its reader filters.

Lists above it choose a paper, a benchmark and a model. Of all benchmarks together it has the
numbers of all items alone, of one its relations or tasks, too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from kgprobe.tables.report import draw, grid, headline, marks
from kgprobe.tables.report.about import PARTS
from kgprobe.tables.report.grid import Cell, Grid
from kgprobe.tables.report.overview import PRINCIPAL
from kgprobe.tables.report.section import Drawing, Section
from kgprobe.tables.views import View

LEAD = (
    "Choose a paper, a benchmark or a model above the chart; each point is one number with its 95 "
    "% interval. A point under the pointer tells its n; one that is pressed shows its trace."
)
WHOLE = "all items"
TITLE = "Per cent right by benchmark"
CAPTION = (
    "Every probe of every model from elsewhere, with its 95 % interval; several points of a model "
    "are other prompts or scores."
)
#: pixels of the picture's height, about
MOST = 420
#: what is chosen by a list above the chart
CHOSEN = ("paper", "benchmark", "model")


def numbers(results: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each principal number of a benchmark, and of its relations or tasks."""
    principal = headline.principal(results)
    views = [(view, principal) for view in headline.blocks(results) if view.name != "sweep"]
    rows = [row for view, frame in [*views, *((view, results) for view in PARTS)]
            for row in _rows(view, frame)]  # fmt: skip
    whole = {row["benchmark"] for row in rows if row["part"] == WHOLE}
    for row in rows:
        # what stands for its benchmark beside others
        row["first"] = row["part"] == WHOLE or row["benchmark"] not in whole
    return list({tuple(row.values()): row for row in rows}.values())


def _rows(view: View, results: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """The principal numbers of a view that are defined."""
    chosen = view.select(results)
    chosen = chosen.filter(pl.col("metric").is_in(PRINCIPAL), pl.col("benchmark") != "")
    named = [name for name in view.rows if name not in ("model", "benchmark", "group")]
    for row in chosen.filter(pl.col("method") != "published").drop_nulls("value").rows(named=True):
        words = dict.fromkeys([row["prompt"], row["method"], *(row[name] for name in named)])
        yield {
            **{name: row[name] for name in CHOSEN},
            "part": row["group"] or WHOLE,
            "probe": ", ".join(text for text in words if text),
            "metric": row["metric"],
            "value": row["value"],
            "low": row["low"],
            "high": row["high"],
            "n": row["n"],
            "few": marks.few(row),
            "trace": grid.trace(row),
        }


def section(rows: list[dict[str, Any]], caption: str = "") -> Section:
    """The page's words, and its numbers as a table; `caption`: what has to be said of them."""
    lead = f"{LEAD} {caption}".rstrip()
    title = "Explore: every principal number"
    return Section("explore", title, lead, folded=[_table("The numbers of the chart", rows)])


def _table(title: str, rows: list[dict[str, Any]]) -> Grid:
    shown = []
    for row in rows:
        bounds = "" if row["low"] is None else f"{row['low']:.1f} to {row['high']:.1f}"
        text = grid.number(row["value"]) + row["few"]
        cell = Cell(text, bounds, row["value"], n=row["n"], trace=row["trace"])
        shown.append({**{k: row[k] for k in (*CHOSEN, "part", "probe", "metric")}, "value": cell})
    return grid.records(title, shown)


def specification(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The chart in Vega-Lite: benchmarks and their parts below each other, a color for a model."""
    every = {name: list(dict.fromkeys(row[name] for row in rows)) for name in CHOSEN}
    lists = [
        alt.param(
            f"chosen_{name}",
            value=None,
            bind=alt.binding_select(options=[None, *of], labels=["all", *of], name=f"{name} "),
        )
        for name, of in every.items()
    ]
    chart = draw.chart(rows, "model", "benchmark", "part", "probe", "metric")
    for name in CHOSEN:
        chosen = f"chosen_{name} == null || datum.{name} == chosen_{name}"
        chart = chart.transform_filter(chosen)
    place = "chosen_benchmark == null ? datum.benchmark : datum.part"
    shown = chart.transform_filter("chosen_benchmark != null || datum.first")
    layers = _layers(shown.transform_calculate(place=place), "place", every["model"])
    return draw.specification(alt.layer(*layers, height={"step": 9}).add_params(*lists))


def picture(rows: list[dict[str, Any]]) -> Drawing | None:
    """The numbers that stand for their benchmarks, without controls and baselines; None without
    any."""
    points = [row for row in rows if row["first"] and not row["model"].startswith(headline.CONTROL)]
    models = list(
        dict.fromkeys(row["model"] for row in points if row["model"] not in headline.BASELINES)
    )
    points = [row for row in points if row["model"] in models]
    if not points:
        return None
    benchmarks = {row["benchmark"] for row in points}
    chart = draw.chart(points, "model", "benchmark", "probe", "metric")
    step = max(3, min(12, MOST // (len(benchmarks) * len(models))))
    layers = _layers(chart, "benchmark", models)
    drawn = draw.specification(alt.layer(*layers, width=draw.WIDTH, height={"step": step}))
    return Drawing("index", "principal", TITLE, CAPTION, drawn, CAPTION, _table(TITLE, points))


def _layers(chart: alt.Chart, place: str, models: list[str]) -> list[alt.Chart]:
    """Intervals and points of each benchmark or part, those of models below each other."""
    base = chart.encode(
        y=alt.Y(f"{place}:N", sort=None, title=None, axis=alt.Axis(labelLimit=180, grid=True)),
        yOffset=alt.YOffset("model:N", sort=models),
    )
    x = partial(alt.X, title="per cent right", axis=alt.Axis(tickCount=10))
    look = draw.encode_points("model", draw.apart(models), columns=4)
    return [
        draw.intervals(base, x=x).encode(stroke=look["stroke"]),
        base.mark_point().encode(x=x("value:Q"), **look),
    ]
