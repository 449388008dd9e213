"""OntoProbe's figures: bars of averages (5 to 7) and grids of premises (2, 3, 4, 8)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kgprobe.tables.ontoprobe import memorising, reasoning, views
from kgprobe.tables.ontoprobe.memorising import PAPERS
from kgprobe.tables.ontoprobe.reasoning import PREMISES, SETTINGS
from kgprobe.tables.ontoprobe.values import METRICS
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.chapter import Drawing, Drawn

NAME = "ontoprobe"
#: switch `average` -> its place among the weightings
PLACES = {"rows": 0, "weighted": 1}
#: premise -> the number of its setting
Panel = Mapping[str, Mapping[str, Any]]


def bars(results: pl.DataFrame, average: str) -> list[Drawing]:
    """Figures 5 to 7: bars of the four metrics per value; hollow diamonds are the paper's models.

    `average` (rows or weighted) says which of the two averages is drawn.
    """
    made = []
    for number, (by, view) in enumerate(views.AVERAGES.items(), 5):
        weighting = memorising.WEIGHTINGS[PLACES[average]]
        found = view.where_also(weighting=[weighting]).of(results)
        values = list(dict.fromkeys(row[0] for row in found.rows if row[1] != PAPERS))
        if not values:
            continue
        with draw.style():
            picture, axes = draw.new_axes(2.6)
            width = 0.8 / len(values)
            looks = zip(("#0072b2", "#e69f00", "#009e73"), ("", "///", "..."), strict=True)
            for place, (value, (colour, hatch)) in enumerate(zip(values, looks, strict=False)):
                at = np.arange(4) + (place - (len(values) - 1) / 2) * width
                ours, theirs = (
                    [found.cells.get(((value, model, weighting), (m,))) for m in METRICS]
                    for model in ("", PAPERS)
                )
                heights = [cell["value"] for cell in ours if cell]
                axes.bar(at, heights, width * 0.92, color=colour, label=value, hatch=hatch)
                printed = [(x, c["value"]) for x, c in zip(at, theirs, strict=True) if c]
                label = f"printed: {PAPERS}" if place == len(values) - 1 else None
                points = np.array(printed).reshape(-1, 2).T
                axes.plot(*points, "D", mfc="none", color=draw.INK, ms=4, label=label)
            axes.set_xticks(np.arange(4), METRICS)
            axes.set_ylabel("%")
            axes.grid(axis="y")
            picture.legend(loc="outside upper center", ncols=4)
        words = {"masks": "multiple or single mask", "pooling": "pooling"}
        caption = (
            f"Mean over configurations, by {words.get(by, 'loss of soft prompts')}. Bars: the "
            f"models asked here. Hollow diamonds: {PAPERS}, out of the printed configurations; "
            "they are other models."
        )
        title = f"Figure {number}"
        name, rows = f"{NAME}_figure{number}", pl.DataFrame([*found.cells.values()])
        made.append(Drawn(NAME, name, title, caption, picture, rows).drawing())
    return made


def grids(results: pl.DataFrame, average: str) -> list[Drawing]:
    """Figures 2 and 8 per model (six rules), 3 and 4 over all: 3 x 3 grids of MRR.

    `average` rows weighs schemes, rules and models by their rows; weighted counts them equally.
    """
    weighting = reasoning.WEIGHTINGS[PLACES[average]]
    found = views.REASONING.where_also(weighting=[weighting]).of(results)
    wanted: dict[str, dict[str, Panel]] = {}
    for row in found.rows:
        model, benchmark, rule, scheme, _ = row
        panel = rule or (f"scheme {scheme}" if scheme else "all models")
        cells = {premise: found.cells[row, (premise,)] for premise in PREMISES
                 if (row, (premise,)) in found.cells}  # fmt: skip
        what = f"Figures 2 and 8: {model}, {benchmark}" if rule else "Figures 3 and 4"
        wanted.setdefault(what, {})[panel] = cells
    made = []
    for number, (title, panels) in enumerate(wanted.items()):
        with draw.style():
            picture = _panels(panels)
        caption = (
            "MRR by setting of the premises (rows P1, columns P2), below it n, the distinct rows; "
            "blank: no rows. Schemes, rules and models "
            f"{'weigh by their rows' if average == 'rows' else 'count equally'}. {marks.FEW_NOTE}"
        )
        rows = pl.DataFrame([cell for cells in panels.values() for cell in cells.values()])
        name = f"{NAME}_reasoning_{number}"
        made.append(Drawn(NAME, name, title, caption, picture, rows).drawing())
    return made


def _panels(panels: Mapping[str, Panel]) -> Figure:
    """A 3 x 3 grid of MRR and n for every title."""
    deep = (len(panels) + 2) // 3
    picture = draw.new_figure(1.0 + 2.1 * deep)
    names: Sequence[str] = list(SETTINGS.values())
    for place, (title, cells) in enumerate(panels.items()):
        own = picture.add_subplot(deep, 3, place + 1)
        found = [[cells.get(f"P1 {a}, P2 {b}") for b in names] for a in names]
        values = np.ma.masked_invalid(
            [[float(cell["value"]) if cell else np.nan for cell in line] for line in found]
        )
        own.pcolormesh(values, cmap="Blues", vmin=0, vmax=1, edgecolors=draw.SURFACE, linewidth=1.5)
        own.invert_yaxis()
        for (y, x), value in np.ma.ndenumerate(values):
            cell = found[y][x] or {}
            ink, n = "#ffffff" if value > 0.6 else "#111111", int(cell["n"])
            shown = f"{value:.2f}{marks.few(n)}\nn {n}"
            own.text(x + 0.5, y + 0.5, shown, ha="center", va="center", color=ink, size=8)
        own.set_xticks(np.arange(3) + 0.5, names, size=8)
        own.set_yticks(np.arange(3) + 0.5, names, size=8)
        own.set_xlabel("P2", size=8)
        own.set_ylabel("P1", size=8)
        own.tick_params(length=0)
        own.set_title(title, size=9)
    return picture
