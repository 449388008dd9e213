"""OntoProbe's chapter of the report: its tables in the paper's layout, and its figures."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kgprobe.benchmarks.ontoprobe_concepts import TASKS
from kgprobe.tables import draw, grid, ontoprobe, table
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.grid import Cell, Grid
from kgprobe.tables.ontoprobe_reasoning import RULES, SETTINGS
from kgprobe.tables.ontoprobe_values import METRICS, OTHERS

LEAD = (
    "Does a model store ontological knowledge, and does it use it as entailment demands? Five "
    "tasks ask for the type of an instance (TP), the superclass of a class (SCO), the "
    "superproperty of a property (SPO), and its domain (DM) and range (RG); six rules give "
    "premises and ask for what follows (Wu et al. 2023)."
)
ORACLE = (
    "The paper's Table 4 holds the maximum over all configurations on the test rows, for every "
    "metric separately. Ours is one configuration chosen on the dev rows; the oracle beside it is "
    "labelled so, and only it is compared with the printed values."
)
GRID_COLUMNS = [f"P1 {a}, P2 {b}" for a in SETTINGS.values() for b in SETTINGS.values()]


def chapter(
    tables: Mapping[str, pl.DataFrame],
    examples: Sequence[Mapping[str, object]],
    funnels: Mapping[str, pl.DataFrame],
    settings: Mapping[str, str],
    mode: str,
    points: Sequence[Mapping[str, object]] = (),
) -> Chapter:
    """The chapter from the tables that were made; `settings` are switches off their default.

    `points`: every point where paper and code disagree, with its value in each mode.
    """
    shown = [
        _sizes(tables["ontoprobe_sizes"]),
        _memorising(tables, False),
        _memorising(tables, True),
    ]
    if examples:
        shown.append(
            grid.records("Table 7: examples of the fixed configuration", examples, "+: right")
        )
    folded = [
        _configurations(tables["ontoprobe_configurations"]),
        _groups(tables["ontoprobe_groups"]),
    ]
    drawings = []
    if "ontoprobe_averages" in tables:
        shown.append(_averages(tables["ontoprobe_averages"]))
        drawings += _bars(tables["ontoprobe_averages"])
    if "ontoprobe_calibration" in tables:
        shown.append(_calibration(tables["ontoprobe_calibration"]))
    if "ontoprobe_reasoning" in tables:
        shown.append(_reasoning(tables["ontoprobe_reasoning"]))
        drawings += _grids(tables["ontoprobe_reasoning"])
    if "ontoprobe_modes" in tables:
        folded.append(_modes(tables["ontoprobe_modes"]))
    if points:
        folded.append(grid.records("Modes: every point of paper and code", points))
    for name, frame in funnels.items():
        folded.append(_funnel(name, frame))
    others = ", ".join(f"{k}: {v}" for k, v in sorted(settings.items()))
    notes = [f"Mode {mode}{'; ' + others if others else ''}.", ORACLE]
    kept = [g for g in shown if g.rows]
    return Chapter("ontoprobe", "Ontological knowledge", LEAD, notes, kept, folded, drawings)


def _split(row: str) -> list[str]:
    return row.split(" | ")


def _sizes(frame: pl.DataFrame) -> Grid:
    cells = table.lookup(frame)
    rows = []
    for row in dict.fromkeys(frame["row"]):
        benchmark, task = _split(row)
        values = [cells[row, c] for c in ("train", "dev", "test", "distinct test")]
        printed = values[2]["published"]
        body = [grid.text(int(v["value"])) for v in values]
        last = grid.text(int(printed)) if printed is not None else grid.text("")
        rows.append([grid.text(task), grid.text(benchmark), *body, last])
    heads = ["task", "benchmark", "train", "dev", "test", "distinct test rows", "test, printed"]
    caption = "Items of every task. The released file repeats 70 rows of TP."
    return Grid("Table 1: sizes", heads, rows, frozenset(range(2, 7)), caption)


def _memorising(tables: Mapping[str, pl.DataFrame], oracle: bool) -> Grid:
    """Table 4: a row per task and metric, a column per baseline and model."""
    frame, base = tables["ontoprobe_memorising"], tables.get("ontoprobe_baseline")
    way = "oracle" if oracle else "chosen"
    cells = table.lookup(frame)
    known = table.lookup(base) if base is not None else {}
    starts = [_split(r) for r in dict.fromkeys(frame["row"])]
    columns = list(dict.fromkeys((m, b, k) for m, b, _, k, w in starts if w == way))
    benchmarks = list(dict.fromkeys(b for _, b, _ in columns))
    rows = []
    for task in TASKS:
        for metric in METRICS:
            if task in ("DM", "RG") and metric == "MRRa":
                continue
            body = [known.get((f"frequency baseline | {b} | {task}", metric)) for b in benchmarks]
            body += [
                cells.get((f"{m} | {b} | {task} | {k} | {way}", metric)) for m, b, k in columns
            ]
            if any(body):
                rows.append([Cell(f"{task} {metric}"), *(_beside(c) for c in body)])
    heads = ["task and metric", *(f"frequency, {b}" for b in benchmarks)]
    heads += [f"{m}, {k}, {b}" for m, b, k in columns]
    title = "Table 4: " + ontoprobe.CHOICES[way]
    caption = (
        "Per cent, with 95 % intervals over items; printed values in brackets where the model is "
        "the same. R@K is a hit rate. MRRa cannot reach 100 where items have several golds."
    )
    return Grid(title, heads, rows, frozenset(range(1, len(heads))), caption)


def _beside(cell: Mapping[str, object] | None, digits: int = 1) -> Cell:
    """A number with the printed one in brackets."""
    made = grid.measured(cell, digits)
    if cell is None or cell["published"] is None:
        return made
    printed = grid.number(float(str(cell["published"])), digits)
    return Cell(f"{made.text} [{printed}]", made.small, made.sort, made.hint)


def _configurations(frame: pl.DataFrame) -> Grid:
    cells = table.lookup(frame)
    rows = []
    for row in dict.fromkeys(frame["row"]):
        model, benchmark, task, name = _split(row)
        numbers = [_beside(cells.get((row, m)), 2) for m in (*METRICS, *OTHERS)]
        n = grid.text(int(cells[row, "MRR"]["n"]))
        rows.append([*(grid.text(v) for v in (model, benchmark, task, name)), *numbers, n])
    heads = ["model", "benchmark", "task", "configuration", *METRICS, *OTHERS, "items"]
    caption = "Every configuration (Appendix C.2), in the paper's order of rows."
    return Grid("All configurations", heads, rows, frozenset(range(4, len(heads))), caption)


def _groups(frame: pl.DataFrame) -> Grid:
    cells = table.lookup(frame)
    rows = []
    for row in dict.fromkeys(frame["row"]):
        model, benchmark, task, kind, group = _split(row)
        numbers = [grid.measured(cells.get((row, m))) for m in METRICS]
        n = grid.text(int(cells[row, "MRR"]["n"]))
        words = (f"{model}, {kind}", benchmark, task, group)
        rows.append([*(grid.text(v) for v in words), *numbers, n])
    heads = ["model", "benchmark", "task", "items", *METRICS, "n"]
    caption = (
        "The chosen configuration by depth of the class, number of golds, popularity of the "
        "instance, and without the items whose gold label stands inside the subject."
    )
    return Grid("Groups of items", heads, rows, frozenset(range(4, len(heads))), caption)


def _averages(frame: pl.DataFrame) -> Grid:
    cells = table.lookup(frame)
    rows = []
    for row in dict.fromkeys(frame["row"]):
        figure, value, weighting = _split(row)
        words = {"rows": "plain mean of rows", "weighted": "tasks and models equally"}
        numbers = [_beside(cells[row, m], 2) for m in METRICS]
        rows.append([Cell(f"{figure}: {value}"), grid.text(words[weighting]), *numbers])
    heads = ["figure and value", "average", *METRICS]
    caption = "Ours; in brackets the same average of the printed configurations."
    return Grid("Figures 5 to 7: averages", heads, rows, frozenset(range(2, 6)), caption)


def _calibration(frame: pl.DataFrame) -> Grid:
    columns = {c: c for c in frame["column"].unique(maintain_order=True)}
    caption = (
        "Control models were taught a known half of the types and superclasses. A probe works "
        "when taught statements rank first more often than untaught ones."
    )
    return grid.pivot(
        frame, "Taught against untaught statements", "model and task", columns, caption=caption
    )


def _modes(frame: pl.DataFrame) -> Grid:
    columns = {c: c for c in frame["column"].unique(maintain_order=True)}
    caption = "MRR (R@5 and recall@5 where named) in per cent, one point switched alone."
    return grid.pivot(frame, "Modes side by side", "model and task", columns, caption=caption)


def _reasoning(frame: pl.DataFrame) -> Grid:
    columns = {c: c for c in GRID_COLUMNS if c in set(frame["column"])}
    cells = table.lookup(frame)
    rows = [
        [grid.text(row), *(grid.measured(cells.get((row, c)), 3) for c in columns)]
        for row in dict.fromkeys(frame["row"])
    ]
    caption = "MRR; EX explicit, IM implicit, NO not given. A dash: no row is in that setting."
    heads = ["what", *columns]
    return Grid(
        "Figures 2, 3, 4, 8: MRR by premises", heads, rows, frozenset(range(1, 10)), caption
    )


def _funnel(name: str, frame: pl.DataFrame) -> Grid:
    rows = [
        [grid.text(r["relation"]), grid.text(r["step"]), grid.text(r["rows_out"])]
        for r in frame.sort("position").iter_rows(named=True)
    ]
    heads = ["task", "step", "kept"]
    return Grid(f"Construction of {name}", heads, rows, frozenset({2}))


def _bars(frame: pl.DataFrame) -> list[Drawing]:
    """Figures 5 to 7: bars of the four metrics per value, printed ones as marks."""
    cells = table.lookup(frame)
    made = []
    for figure in ("5", "6", "7"):
        start = f"Figure {figure} | "
        rows = [
            r for r in dict.fromkeys(frame["row"]) if r.startswith(start) and r.endswith("rows")
        ]
        if not rows:
            continue
        with draw.style():
            picture, axes = draw.new_axes(2.6)
            width = 0.8 / len(rows)
            hatches = ("", "///", "...")
            for place, row in enumerate(rows):
                at = np.arange(4) + (place - (len(rows) - 1) / 2) * width
                values = [cells[row, m]["value"] for m in METRICS]
                colour = ("#0072b2", "#e69f00", "#009e73")[place]
                name = _split(row)[1]
                axes.bar(at, values, width * 0.92, color=colour, label=name, hatch=hatches[place])
                printed = [cells[row, m]["published"] for m in METRICS]
                if all(p is not None for p in printed):
                    axes.plot(at, printed, "D", color=draw.INK, ms=4)
            axes.set_xticks(np.arange(4), METRICS)
            axes.set_ylabel("%")
            axes.grid(axis="y")
            picture.legend(loc="outside upper center", ncols=3)
        words = {"5": "multiple or single mask", "6": "pooling", "7": "loss of soft prompts"}
        caption = f"Mean over configurations, by {words[figure]}; diamonds: the printed ones."
        name = f"ontoprobe_figure{figure}"
        made.append(
            Drawing(
                "ontoprobe", name, f"Figure {figure}", caption, draw.svg(picture, name), caption
            )
        )
    return made


def _grids(frame: pl.DataFrame) -> list[Drawing]:
    """Figures 2 and 8 per model (six rules), 3 and 4 over all: 3 x 3 grids of MRR."""
    cells = table.lookup(frame)
    rows = [r.removesuffix(" (few rows)") for r in frame["row"].unique(maintain_order=True)]
    wanted: dict[str, list[tuple[str, str]]] = {}
    for row in dict.fromkeys(rows):
        first, second = _split(row)
        panel = second if second in RULES else first
        wanted.setdefault(first if second in RULES else "averages", []).append((panel, row))
    made = []
    for number, (what, panels) in enumerate(wanted.items()):
        with draw.style():
            picture = _panels(cells, panels)
        title = "Figures 3 and 4" if what == "averages" else f"Figures 2 and 8: {what}"
        caption = "MRR by setting of the premises (rows P1, columns P2); blank: no rows."
        name = f"ontoprobe_reasoning_{number}"
        made.append(Drawing("ontoprobe", name, title, caption, draw.svg(picture, name), caption))
    return made


def _panels(
    cells: Mapping[tuple[str, str], Mapping[str, object]], panels: Sequence[tuple[str, str]]
) -> Figure:
    picture, axes = draw.new_axes(1.0 + 1.75 * ((len(panels) + 2) // 3))
    picture.delaxes(axes)
    names = list(SETTINGS.values())
    for place, (title, row) in enumerate(panels):
        own = picture.add_subplot((len(panels) + 2) // 3, 3, place + 1)
        values = np.full((3, 3), np.nan)
        for i, a in enumerate(names):
            for j, b in enumerate(names):
                found = [cells.get((r, f"P1 {a}, P2 {b}")) for r in (row, row + " (few rows)")]
                for cell in found:
                    if cell is not None:
                        values[i, j] = float(str(cell["value"]))
        own.pcolormesh(values, cmap="Blues", vmin=0, vmax=1, edgecolors=draw.SURFACE, linewidth=1.5)
        own.invert_yaxis()
        for (y, x), value in np.ndenumerate(values):
            if not np.isnan(value):
                ink = "#ffffff" if value > 0.6 else "#111111"
                own.text(
                    x + 0.5, y + 0.5, f"{value:.2f}", ha="center", va="center", color=ink, size=9
                )
        own.set_xticks(np.arange(3) + 0.5, names, size=8)
        own.set_yticks(np.arange(3) + 0.5, names, size=8)
        own.tick_params(length=0)
        own.set_title(title, size=9)
    return picture
