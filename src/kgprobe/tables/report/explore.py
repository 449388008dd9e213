"""A page to look around in: every principal number as a chart that its reader filters.

The chart is a specification of Vega-Lite, drawn by the runtime that the package vl-convert carries
(extra `workflow`) and that is written into the page. Without the package there is no such page.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from kgprobe.tables.report import grid, headline
from kgprobe.tables.report.about import PARTS
from kgprobe.tables.report.chapter import Chapter
from kgprobe.tables.report.grid import Cell
from kgprobe.tables.report.overview import PRINCIPAL
from kgprobe.tables.views import View

LEAD = (
    "Choose a paper, a benchmark or a model above the chart; each point is one number with its 95 "
    "% interval. A point under the pointer tells its n; one that is pressed shows its trace."
)
WHOLE = "all items"
#: Okabe and Ito's colours, as in the figures
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
#: what is chosen by a list above the chart
CHOSEN = ("paper", "benchmark", "model")


def runtime() -> str:
    """The scripts that draw a chart, "" where their package is not installed."""
    try:
        import vl_convert
    except ModuleNotFoundError:
        return ""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def numbers(results: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each principal number of a benchmark, and of its relations or tasks."""
    own = headline.principal(results)
    views = [(view, own) for view in headline.blocks(results) if view.name != "sweep"]
    rows = [row for view, frame in [*views, *((view, results) for view in PARTS)]
            for row in _rows(view, frame)]  # fmt: skip
    whole = {row["benchmark"] for row in rows if row["part"] == WHOLE}
    for row in rows:
        # what stands for its benchmark beside others
        row["first"] = row["part"] == WHOLE or row["benchmark"] not in whole
    return list({tuple(row.values()): row for row in rows}.values())


def _rows(view: View, results: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """The principal numbers of a view that are defined."""
    own = view.chosen(results)
    own = own.filter(pl.col("metric").is_in(PRINCIPAL), pl.col("benchmark") != "")
    named = [name for name in view.rows if name not in ("model", "benchmark", "group")]
    for row in own.filter(pl.col("method") != "published").drop_nulls("value").rows(named=True):
        asked = dict.fromkeys([row["prompt"], row["method"], *(row[name] for name in named)])
        yield {
            **{name: row[name] for name in CHOSEN},
            "part": row["group"] or WHOLE,
            "probe": ", ".join(text for text in asked if text),
            "metric": row["metric"],
            "value": row["value"],
            "low": row["low"],
            "high": row["high"],
            "n": row["n"],
            "trace": grid.trace(row),
        }


def chapter(rows: list[dict[str, Any]]) -> Chapter:
    """The page's words, and its numbers as a table."""
    shown = []
    for row in rows:
        bounds = "" if row["low"] is None else f"{row['low']:.1f} to {row['high']:.1f}"
        cell = Cell(grid.number(row["value"]), bounds, row["value"], n=row["n"], trace=row["trace"])
        shown.append({**{k: row[k] for k in (*CHOSEN, "part", "probe", "metric")}, "value": cell})
    made = grid.records("The numbers of the chart", shown)
    return Chapter("explore", "Explore: every principal number", LEAD, folded=[made])


def specification(rows: list[dict[str, Any]]) -> Mapping[str, Any]:
    """The chart in Vega-Lite: benchmarks and their parts below each other, a colour for a model."""
    every = {name: list(dict.fromkeys(row[name] for row in rows)) for name in CHOSEN}
    params = [
        {
            "name": f"chosen_{name}",
            "value": None,
            "bind": {"input": "select", "name": f"{name} ", "options": [None, *values],
                     "labels": ["all", *values]},
        }
        for name, values in every.items()
    ]  # fmt: skip
    chosen = [
        {"filter": f"chosen_{name} == null || datum.{name} == chosen_{name}"} for name in CHOSEN
    ]
    # of all benchmarks together the numbers of all items alone
    chosen.append({"filter": "chosen_benchmark != null || datum.first"})
    y = {"field": "place", "type": "nominal", "sort": None, "title": None,
         "axis": {"labelLimit": 180, "grid": True}}  # fmt: skip
    colour = {"field": "model", "type": "nominal", "title": None,
              "scale": {"domain": every["model"], "range": list(COLOURS)},
              "legend": {"orient": "top", "columns": 4, "labelLimit": 260}}  # fmt: skip
    told = [{"field": name} for name in ("model", "benchmark", "part", "probe", "metric", "n")]
    told += [{"field": name, "format": ".1f"} for name in ("value", "low", "high")]
    x = {"type": "quantitative", "title": "per cent right", "axis": {"tickCount": 10}}
    shape = {"field": "model", "legend": None}
    offset = {"field": "model", "sort": every["model"]}
    return {
        "height": {"step": 9},
        "data": {"values": rows},
        "params": params,
        "transform": [
            *chosen,
            {"calculate": "chosen_benchmark == null ? datum.benchmark : datum.part", "as": "place"},
        ],
        "encoding": {"y": y, "yOffset": offset, "color": colour, "tooltip": told},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 1.2},
             "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
             "encoding": {"x": {"field": "value", **x}, "shape": shape}},
        ],
        "config": {"background": None, "font": "DejaVu Sans, sans-serif", "view": {"stroke": None},
                   "axis": {"labelFontSize": 12, "titleFontSize": 12},
                   "legend": {"labelFontSize": 12}},
    }  # fmt: skip
