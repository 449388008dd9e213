"""The chapter of exposures: its tables, and curves over times shown and over training steps."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from kgprobe.tables.report import draw, grid
from kgprobe.tables.report.chapter import Chapter, Drawn
from kgprobe.tables.views import View

TITLE = "How often must a fact be seen?"
LEAD = (
    "Control models were shown each fact a known number of times, all in one shuffled pass, so "
    "that recall and margin can be read against exposure. A sentence that is shown does not always "
    "ask for the fact's object: a masked model may have other words hidden. How often it was asked "
    "for stands beside."
)
TERMS = {
    "Margin": "Log-likelihood of the gold less that of the best other option, in nats, mean over "
    "templates.",
    "Crossing": "The least number of sentences whose facts are told from facts never shown with "
    "the AUC that the configuration names. Its interval is that of the same bootstrap; there is "
    "none where more than 2.5 % of the draws never reach it. The fraction: draws that reach it.",
    "Intervals of exposures": "Facts are drawn, each with what all models make of it, and so are "
    "the models of a kind: percentiles of 2,000 draws.",
}
#: key of the setting on the horizontal axis -> its name, the metrics drawn
AXES = {
    "exposures": ("sentences of the fact that were shown", ("AUC", "accuracy", "margin")),
    "step": ("training steps", ("accuracy", "margin")),
}
LABELS = {"AUC": "AUC against untaught", "accuracy": "accuracy, %", "margin": "margin, nats"}
WORDS = {
    ("metric", "accuracy"): "accuracy, %",
    ("metric", "margin"): "margin, nats",
    ("metric", "crossing"): "crossing, sentences",
    ("prompt", "templates"): "",
}
DIGITS = {"AUC": 3, "crossing": 0, "margin": 2}

EXPOSURES = View(
    "exposures",
    "Recall and margin by times shown",
    where={"metric": ["AUC", "accuracy", "margin", "times a target"], "step": [""]},
    rows=["model", "method", "exposures"],
    heads={"exposures": "times shown"},
    words=WORDS,
    digits=DIGITS,
)
CROSSINGS = View(
    "crossings",
    "The crossing: least number of sentences",
    where={"metric": ["crossing"]},
    rows=["model", "method"],
    words=WORDS,
    digits=DIGITS,
)
STEPS = View(
    "steps",
    "Accuracy and margin by training step",
    where={"metric": ["accuracy", "margin"], "exposures": [""]},
    rows=["benchmark", "model", "method", "step"],
    words=WORDS,
    digits=DIGITS,
)


def views(own: pl.DataFrame) -> list[View]:
    """The views that RESULTS have numbers for."""
    return [view for view in (CROSSINGS, EXPOSURES, STEPS) if view.chosen(own).height]


def chapter(own: pl.DataFrame, drawn: Sequence[Drawn]) -> Chapter:
    """The chapter of RESULTS of exposures and steps, with its figures."""
    grids = [grid.of_view(view, own) for view in views(own)]
    drawings = [one.drawing() for one in drawn]
    return Chapter("exposures", TITLE, LEAD, grids=grids, drawings=drawings, terms=TERMS)


def figures(own: pl.DataFrame, kinds: Mapping[str, str], least: float) -> list[Drawn]:
    """A figure of every axis that RESULTS have numbers for; `kinds`: model -> kind."""
    made = []
    for axis, title in (("exposures", "Against times shown"), ("step", "Against training steps")):
        lines = _lines(own, axis)
        if lines:
            caption = "Bars are 95 % intervals." + (
                f" Dotted: an AUC of {least:g}." if axis == "exposures" else ""
            )
            name = "exposures" if axis == "exposures" else "steps"
            figure = curves(lines, axis, kinds, least)
            told = [row for by in lines.values() for at in by.values() for row in at.values()]
            rows = pl.DataFrame(told, schema=own.schema)
            made.append(Drawn("exposures", name, title, caption, figure, rows))
    return made


Lines = dict[tuple[str, ...], dict[str, dict[int, Mapping[str, Any]]]]


def _lines(own: pl.DataFrame, axis: str) -> Lines:
    """(model, method, benchmark) -> metric -> place on the axis -> row."""
    found: Lines = {}
    for row in own.iter_rows(named=True):
        place = json.loads(row["setting"]).get(axis)
        if place is not None and row["metric"] in AXES[axis][1]:
            key = tuple(row[name] for name in ("model", "method", "benchmark"))
            found.setdefault(key, {}).setdefault(row["metric"], {})[place] = row
    return found


def curves(lines: Lines, axis: str, kinds: Mapping[str, str], least: float) -> draw.Chart:
    """A panel for every metric, over a log axis with 0 at its left end; a line for every probe."""
    title, metrics = AXES[axis]
    metrics = tuple(name for name in metrics if any(name in told for told in lines.values()))
    named = {key: _told(key, lines) for key in lines}
    points = [
        draw.point(row, probe=named[key], metric=metric, at=place)
        for key, told in lines.items()
        for metric, own in told.items()
        for place, row in sorted(own.items())
    ]
    places = sorted({point["at"] for point in points})
    look = draw.probes({named[key]: kinds[key[0]] for key in lines})
    ticks = alt.Axis(values=places, format=",.0f", labelOverlap="greedy")
    scale = alt.Scale(type="symlog", domain=[0, places[-1]], nice=False)
    panels = []
    for metric in metrics:
        below = f"{title} (log scale)" if metric == metrics[-1] else None
        x, y = (
            alt.X("at:Q", title=below, axis=ticks, scale=scale),
            draw.numbers(alt.Y, LABELS[metric]),
        )
        own = [point for point in points if point["metric"] == metric]
        layers = draw.lines(draw.chart(own, "at", by="probe").encode(x=x), y, look)
        if metric == "AUC":
            level = alt.Chart(alt.InlineData(values=[{"value": least}]))
            layers.append(level.mark_rule(color=draw.INK, strokeDash=[1, 2]).encode(y=y("value:Q")))
        panels.append(alt.layer(*layers).properties(width=430, height=150))
    return draw.filtered(*panels)


def _told(key: tuple[str, ...], lines: Lines) -> str:
    """What tells a line apart: the model, and the rest where the lines differ in it."""
    rest = [part for i, part in enumerate(key) if i and any(k[i] != part for k in lines)]
    return ", ".join([key[0].removeprefix("control-exposed-"), *rest])
