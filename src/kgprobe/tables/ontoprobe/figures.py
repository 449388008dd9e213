"""OntoProbe's figures: averages (5 to 7), premises (2, 3, 4, 8), reliability, slices."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import altair as alt
import polars as pl

from kgprobe.benchmarks.ontoprobe.concepts import TASKS
from kgprobe.experiments import is_control
from kgprobe.tables import option_plots
from kgprobe.tables.ontoprobe import memorizing, reasoning, views
from kgprobe.tables.ontoprobe.memorizing import PAPERS
from kgprobe.tables.ontoprobe.reasoning import PREMISES, SETTINGS
from kgprobe.tables.ontoprobe.values import AGGREGATIONS, METRICS
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.section import Drawing, drawing

NAME = "ontoprobe"
#: switch `average` -> its index among the weightings
INDEX = {"rows": 0, "weighted": 1}
#: premise -> the number of its setting
Panel = Mapping[str, Mapping[str, Any]]


def drawings(
    results: pl.DataFrame, average: str, models: Mapping[str, Mapping[str, str]]
) -> list[Drawing]:
    """Draw every figure of RESULTS; `models`: by name. For candidates scored as sentences, also
    confidence and accuracy, and accuracy by slice, by task."""
    kinds = {name: row["kind"] for name, row in models.items()}
    controls = [name for name, row in models.items() if is_control(row)]
    sets = results["benchmark"].unique(maintain_order=True).to_list()
    panels = product(sets, TASKS)
    return [
        *bars(results, average),
        *grids(results, average),
        *option_plots.drawings(NAME, NAME, results, kinds, panels, AGGREGATIONS[0], controls),
    ]


def bars(results: pl.DataFrame, average: str) -> Iterator[Drawing]:
    """Draw Figures 5 to 7: bars of the four metrics per value; hollow diamonds are the paper's
    models. `average` (rows or weighted) selects which of the two averages is drawn."""
    weighting = memorizing.WEIGHTINGS[INDEX[average]]
    for number, (by, view) in enumerate(views.AVERAGES.items(), 5):
        printed = view.where_also(weighting=[weighting]).of(results)
        values = list(dict.fromkeys(row[0] for row in printed.rows if row[1] != PAPERS))
        if not values:
            continue
        points = [
            draw.point(printed.cells[key], average=value, metric=metric, papers=bool(model))
            for value in values for model in ("", PAPERS) for metric in METRICS
            if (key := ((value, model, weighting), (metric,))) in printed.cells
        ]  # fmt: skip
        words = {"masks": "multiple or single mask", "pooling": "pooling"}
        caption = (
            f"Mean over configurations, by {words.get(by, 'loss of soft prompts')}. Bars: the "
            f"models asked here. Hollow diamonds: {PAPERS}, from the printed configurations, which "
            "are other models."
        )
        base = draw.chart(points, "average", "metric").encode(
            x=alt.X("metric:N", sort=list(METRICS), title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("value:Q", title="%", axis=alt.Axis(grid=True)),
            xOffset=alt.XOffset("average:N", sort=list(values)),
        )
        look = dict(zip(values, (draw.TRAINED_ON, draw.HELD_OUT, "#009e73"), strict=False))
        theirs = base.transform_filter("datum.papers").mark_point(
            shape="diamond", filled=True, fill=draw.SURFACE, stroke=draw.INK
        )
        ours = base.transform_filter("!datum.papers").mark_bar()
        ours = ours.encode(color=draw.encode(alt.Color, "average", look, columns=4))
        figure = draw.set_size(ours, theirs, height=200)
        name, rows = f"{NAME}_figure{number}", pl.DataFrame([*printed.cells.values()])
        yield drawing(NAME, name, f"Figure {number}", caption, figure, rows)


def grids(results: pl.DataFrame, average: str) -> Iterator[Drawing]:
    """Draw Figures 2 and 8 per model (six rules), 3 and 4 over all: 3 x 3 grids of MRR. With
    `average` rows, schemes, rules and models are weighted by their rows; with weighted, equally."""
    weighting = reasoning.WEIGHTINGS[INDEX[average]]
    printed = views.REASONING.where_also(weighting=[weighting]).of(results)
    wanted: dict[str, dict[str, Panel]] = {}
    for row in printed.rows:
        model, benchmark, rule, scheme, _ = row
        if model and scheme:
            continue  # the figure has the schemes of all models together
        panel = rule or (f"scheme {scheme}" if scheme else "all models")
        cells = {p: printed.cells[row, (p,)] for p in PREMISES if (row, (p,)) in printed.cells}
        what = f"Figures 2 and 8: {model}, {benchmark}" if rule else "Figures 3 and 4"
        wanted.setdefault(what, {})[panel] = cells
    for number, (title, panels) in enumerate(wanted.items()):
        caption = (
            "MRR by setting of the premises (rows P1, columns P2), with n, the number of distinct "
            "rows, below; blank: no rows. Schemes, rules and models "
            f"{('weigh by their rows' if average == 'rows' else 'count equally')}."
        )
        rows = pl.DataFrame([cell for cells in panels.values() for cell in cells.values()])
        yield drawing(NAME, f"{NAME}_reasoning_{number}", title, caption, _panels(panels), rows)


def _panels(panels: Mapping[str, Panel]) -> draw.Chart:
    """Draw a 3 x 3 grid of MRR and n for every title."""
    names = list(SETTINGS)
    premises = dict(zip(PREMISES, product(names, repeat=2), strict=True))
    cells = [
        draw.point(cell, panel=title, P1=premises[premise][0], P2=premises[premise][1],
                   label=f"{cell['value']:.2f}{marks.few(cell)}\nn {cell['n']:,}")
        for title, panel in panels.items() for premise, cell in panel.items()
        if cell["value"] is not None
    ]  # fmt: skip
    axis = alt.Axis(ticks=False, domain=False, labelAngle=0)
    base = draw.chart(cells, "panel", "P1", "P2").encode(
        x=alt.X("P2:N", axis=axis, scale=alt.Scale(domain=names)),
        y=alt.Y("P1:N", axis=axis, scale=alt.Scale(domain=names)),
    )
    grid = alt.layer(*draw.heat(base, "label:N", 1, lines=2))
    facet = alt.Facet("panel:N", sort=list(panels), title=None)
    return grid.properties(width={"step": 44}, height={"step": 40}).facet(facet, columns=3)
