"""OntoProbe's figures: bars of averages (5 to 7) and grids of premises (2, 3, 4, 8)."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kgprobe.tables import draw, marks, table
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.ontoprobe import PAPERS
from kgprobe.tables.ontoprobe_reasoning import RULES, SETTINGS
from kgprobe.tables.ontoprobe_values import METRICS


def bars(frame: pl.DataFrame, average: str) -> list[Drawing]:
    """Figures 5 to 7: bars of the four metrics per value; hollow diamonds are the paper's models.

    `average` (rows or weighted) says which of the two averages is drawn.
    """
    cells = table.lookup(frame)
    made = []
    for figure in ("5", "6", "7"):
        known = [r.split(" | ") for r in dict.fromkeys(frame["row"])]
        rows = [
            r for r in known if r[0] == f"Figure {figure}" and r[2] == average and r[3] != PAPERS
        ]
        if not rows:
            continue
        with draw.style():
            picture, axes = draw.new_axes(2.6)
            width = 0.8 / len(rows)
            hatches = ("", "///", "...")
            for place, row in enumerate(rows):
                at = np.arange(4) + (place - (len(rows) - 1) / 2) * width
                values = [cells[" | ".join(row), m]["value"] for m in METRICS]
                colour = ("#0072b2", "#e69f00", "#009e73")[place]
                axes.bar(at, values, width * 0.92, color=colour, label=row[1], hatch=hatches[place])
                theirs = [cells.get((" | ".join([*row[:3], PAPERS]), m)) for m in METRICS]
                printed = [(x, c["value"]) for x, c in zip(at, theirs, strict=True) if c]
                label = f"printed: {PAPERS}" if place == len(rows) - 1 else None
                points = np.array(printed).reshape(-1, 2).T
                axes.plot(*points, "D", mfc="none", color=draw.INK, ms=4, label=label)
            axes.set_xticks(np.arange(4), METRICS)
            axes.set_ylabel("%")
            axes.grid(axis="y")
            picture.legend(loc="outside upper center", ncols=4)
        words = {"5": "multiple or single mask", "6": "pooling", "7": "loss of soft prompts"}
        caption = (
            f"Mean over configurations, by {words[figure]}. Bars: {rows[0][3]}. Hollow diamonds: "
            f"{PAPERS}, out of the printed configurations; they are other models."
        )
        name = f"ontoprobe_figure{figure}"
        made.append(
            Drawing(
                "ontoprobe", name, f"Figure {figure}", caption, draw.svg(picture, name), caption
            )
        )
    return made


def grids(frame: pl.DataFrame, average: str) -> list[Drawing]:
    """Figures 2 and 8 per model (six rules), 3 and 4 over all: 3 x 3 grids of MRR.

    `average` rows weighs schemes, rules and models by their rows; weighted counts them equally.
    """
    suffix = ", by rows" if average == "rows" else ""
    cells = {
        (row, column.removesuffix(suffix)): cell
        for (row, column), cell in table.lookup(frame).items()
        if column.endswith(", by rows") == bool(suffix)
    }
    wanted: dict[str, list[tuple[str, str]]] = {}
    for row in dict.fromkeys(frame["row"]):
        first, second = row.split(" | ")
        panel = second if second in RULES else first
        wanted.setdefault(first if second in RULES else "averages", []).append((panel, row))
    made = []
    for number, (what, panels) in enumerate(wanted.items()):
        with draw.style():
            picture = _panels(cells, panels)
        title = "Figures 3 and 4" if what == "averages" else f"Figures 2 and 8: {what}"
        caption = (
            "MRR by setting of the premises (rows P1, columns P2), below it n, the distinct rows; "
            "blank: no rows. Schemes, rules and models "
            f"{'weigh by their rows' if suffix else 'count equally'}. {marks.FEW_NOTE}"
        )
        name = f"ontoprobe_reasoning_{number}"
        made.append(Drawing("ontoprobe", name, title, caption, draw.svg(picture, name), caption))
    return made


def _panels(
    cells: Mapping[tuple[str, str], Mapping[str, object]], panels: Sequence[tuple[str, str]]
) -> Figure:
    """A 3 x 3 grid of MRR and n for every (title, row of the table)."""
    deep = (len(panels) + 2) // 3
    picture, axes = draw.new_axes(1.0 + 2.1 * deep)
    picture.delaxes(axes)
    names = list(SETTINGS.values())
    for place, (title, row) in enumerate(panels):
        own = picture.add_subplot(deep, 3, place + 1)
        found = [[cells.get((row, f"P1 {a}, P2 {b}")) for b in names] for a in names]
        values = np.ma.masked_invalid(
            [[float(str(cell["value"])) if cell else np.nan for cell in line] for line in found]
        )
        own.pcolormesh(values, cmap="Blues", vmin=0, vmax=1, edgecolors=draw.SURFACE, linewidth=1.5)
        own.invert_yaxis()
        for (y, x), value in np.ma.ndenumerate(values):
            ink, n = "#ffffff" if value > 0.6 else "#111111", int(str(found[y][x]["n"]))
            shown = f"{value:.2f}{marks.few(n)}\nn {n}"
            own.text(x + 0.5, y + 0.5, shown, ha="center", va="center", color=ink, size=8)
        own.set_xticks(np.arange(3) + 0.5, names, size=8)
        own.set_yticks(np.arange(3) + 0.5, names, size=8)
        own.set_xlabel("P2", size=8)
        own.set_ylabel("P1", size=8)
        own.tick_params(length=0)
        own.set_title(title, size=9)
    return picture
