"""OntoProbe's chapter of the report: its tables in the paper's layout, and its figures."""

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl

from kgprobe.benchmarks.ontoprobe_concepts import TASKS
from kgprobe.tables import grid, marks, ontoprobe, table
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.grid import Cell, Grid
from kgprobe.tables.ontoprobe_figures import bars, grids
from kgprobe.tables.ontoprobe_reasoning import SETTINGS
from kgprobe.tables.ontoprobe_values import METRICS, OTHERS

LEAD = (
    "Does a model store ontological knowledge, and does it use it as entailment demands? Five "
    "tasks ask for the type of an instance (TP), the superclass of a class (SCO), the "
    "superproperty of a property (SPO), and its domain (DM) and range (RG); six rules give "
    "premises and ask for what follows (Wu et al. 2023)."
)
ORACLE = (
    "The paper's Table 4 holds the maximum over all configurations on the test rows, for every "
    "metric separately. Ours is one configuration chosen on the dev rows; beside it stand the one "
    "laid down beforehand (fixed) and the oracle, labelled so, and only the oracle is compared "
    "with the printed values."
)
GRID_COLUMNS = [f"P1 {a}, P2 {b}" for a in SETTINGS.values() for b in SETTINGS.values()]


def chapter(
    tables: Mapping[str, pl.DataFrame],
    examples: Sequence[Mapping[str, object]],
    funnels: Mapping[str, pl.DataFrame],
    settings: Mapping[str, str],
    mode: str,
    points: Sequence[Mapping[str, object]] = (),
    select: str = "dev",
    average: str = "weighted",
    others: Sequence[Mapping[str, object]] = (),
) -> Chapter:
    """The chapter from the tables that were made; `settings` are switches off their default.

    `points`: every point where paper and code disagree, with its value in each mode; `others`: the
    switches of the runs that stand beside this one. `select` says which Table 4 stands first,
    `average` which averages the figures show.
    """
    shown = [_sizes(tables["ontoprobe_sizes"])]
    ways = ("oracle", "chosen", "fixed") if select == "oracle" else tuple(ontoprobe.CHOICES)
    shown += [_memorising(tables, way) for way in ways]
    if "ontoprobe_runs" in tables:
        shown.append(_runs(tables["ontoprobe_runs"], others))
    if examples:
        shown.append(
            grid.records("Table 7: examples of the fixed configuration", examples, "+: right")
        )
    folded = [_configurations(tables["ontoprobe_configurations"])]
    if "ontoprobe_groups" in tables:
        folded.append(_groups(tables["ontoprobe_groups"]))
    if "ontoprobe_seeds" in tables:
        folded.append(_seeds(tables["ontoprobe_seeds"]))
    drawings = []
    if "ontoprobe_averages" in tables:
        shown.append(_averages(tables["ontoprobe_averages"]))
        drawings += bars(tables["ontoprobe_averages"], average)
    if "ontoprobe_calibration" in tables:
        shown.append(_calibration(tables["ontoprobe_calibration"]))
    if "ontoprobe_untaught" in tables:
        shown.append(_untaught(tables["ontoprobe_untaught"]))
    if "ontoprobe_reasoning" in tables:
        shown.append(_reasoning(tables["ontoprobe_reasoning"]))
        drawings += grids(tables["ontoprobe_reasoning"], average)
    if "ontoprobe_modes" in tables:
        folded.append(_modes(tables["ontoprobe_modes"]))
    if points:
        folded.append(grid.records("Modes: every point of paper and code", points))
    for name, frame in funnels.items():
        folded.append(_funnel(name, frame))
    told = ", ".join(f"{k}: {v}" for k, v in sorted(settings.items()))
    notes = [f"Mode {mode}{'; ' + told if told else ''}.", ORACLE]
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


def _memorising(tables: Mapping[str, pl.DataFrame], way: str) -> Grid:
    """Table 4: a row per task and metric; per set its candidates, rows and baseline; the models."""
    frame, base = tables["ontoprobe_memorising"], tables.get("ontoprobe_baseline")
    cells, sizes = table.lookup(frame), table.lookup(tables["ontoprobe_sizes"])
    known = table.lookup(base) if base is not None else {}
    starts = [_split(r) for r in dict.fromkeys(frame["row"])]
    columns = list(dict.fromkeys((m, b, k) for m, b, _, k, w in starts if w == way))
    benchmarks = list(dict.fromkeys(b for _, b, _ in columns))
    rows = []
    for task in TASKS:
        for metric in METRICS:
            if task in ("DM", "RG") and metric == "MRRa":
                continue
            models = [
                cells.get((f"{m} | {b} | {task} | {k} | {way}", metric)) for m, b, k in columns
            ]
            if not any(models):
                continue
            body = []
            for b in benchmarks:
                asked = [
                    c for c, (_, own, _) in zip(models, columns, strict=True) if own == b and c
                ]
                size = sizes.get((f"{b} | {task}", "candidates"))
                body.append(grid.text(int(size["value"]) if size else None))
                body.append(grid.text(asked[0]["n"] if asked else None))
                body.append(grid.beside(known.get((f"frequency baseline | {b} | {task}", metric))))
            rows.append([Cell(f"{task} {metric}"), *body, *(grid.beside(c) for c in models)])
    heads = ["task and metric"]
    heads += [f"{what}, {b}" for b in benchmarks for what in ("candidates", "rows", "frequency")]
    heads += [f"{m}, {k}, {b}" for m, b, k in columns]
    title = "Table 4: " + ontoprobe.CHOICES[way]
    caption = (
        "Per cent, with 95 % intervals over items; printed values in brackets where the model is "
        "the same. R@K is a hit rate: compare models of one set only, since fewer candidates are "
        "easier. MRRa cannot reach 100 where items have several golds. Frequency: golds of the "
        "training rows by count; a small part of a set takes those of the whole."
    )
    return Grid(title, heads, rows, frozenset(range(1, len(heads))), caption)


def _configurations(frame: pl.DataFrame) -> Grid:
    cells = table.lookup(frame)
    rows = []
    for row in dict.fromkeys(frame["row"]):
        model, benchmark, task, name = _split(row)
        numbers = [grid.beside(cells.get((row, m)), 2) for m in (*METRICS, *OTHERS)]
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
        "The chosen configuration by depth of the class, number of golds, tokens of the finest "
        "gold (in the model's own tokenizer), popularity of the instance, and without the items "
        "whose gold label stands inside the subject."
    )
    return Grid("Groups of items", heads, rows, frozenset(range(4, len(heads))), caption)


def _averages(frame: pl.DataFrame) -> Grid:
    cells = table.lookup(frame)
    rows = []
    for row in dict.fromkeys(frame["row"]):
        figure, value, weighting, whose = _split(row)
        words = {"rows": "plain mean of rows", "weighted": "tasks and models equally"}
        numbers = [grid.beside(cells[row, m], 2) for m in METRICS]
        n = grid.text(int(cells[row, "MRR"]["n"]))
        words_ = (f"{figure}: {value}", whose, words[weighting])
        rows.append([*(grid.text(w) for w in words_), *numbers, n])
    heads = ["figure and value", "models", "average", *METRICS, "configurations"]
    caption = (
        "Means over configurations: of the models that were asked here, and of the paper's six "
        "models out of the printed Appendix C.2. The two are averages over other models; soft "
        "prompts count once, as the mean over their seeds."
    )
    return Grid("Figures 5 to 7: averages", heads, rows, frozenset(range(3, 8)), caption)


def _seeds(frame: pl.DataFrame) -> Grid:
    columns = {c: c for m in METRICS for c in (m, f"{m}, spread")}
    caption = (
        "Means over the seeds of the initial vectors with Student's 95 % interval (none for one "
        "seed), and the standard deviation over seeds."
    )
    return grid.pivot(frame, "Soft prompts over seeds", "configuration", columns, caption=caption)


def _runs(frame: pl.DataFrame, others: Sequence[Mapping[str, object]]) -> Grid:
    columns = {c: c for c in frame["column"].unique(maintain_order=True)}
    told = "; ".join(f"{o['run']}: {o['switches off their default']}" for o in others)
    caption = f"Table 4 of this run beside runs under other modes or switches ({told})."
    return grid.pivot(frame, "Runs side by side", "what", columns, caption=caption)


def _calibration(frame: pl.DataFrame) -> Grid:
    caption = (
        "Control models were taught a known half of the types and superclasses. R@1 of the fixed "
        "configuration (m, mean, last template; soft: BCE), a row per kind of template. Chance: a "
        "random candidate is one of the golds; the limit is twice that and 5 points; AUC by MRR."
    )
    cells, rows = table.lookup(frame), []
    for row in dict.fromkeys(frame["row"]):
        numbers = [
            grid.measured(cells.get((row, c)), 3 if c == "AUC" else 1, few=True) for c in CALIBRATED
        ]
        sizes = [grid.text(cells[row, c]["n"]) for c in ("taught", "untaught")]
        rows.append([grid.text(row), *numbers, *sizes])
    heads = ["model, task, template", *CALIBRATED.values(), "taught rows", "untaught rows"]
    title = "Taught against untaught statements"
    return Grid(title, heads, rows, frozenset(range(1, len(heads))), caption)


CALIBRATED = {
    "taught": "taught, %",
    "untaught": "untaught, %",
    "chance": "chance, %",
    "limit for untaught": "limit for untaught, %",
    "AUC": "AUC",
    "MRR, taught": "MRR, taught, %",
    "MRR, untaught": "MRR, untaught, %",
}


def _untaught(frame: pl.DataFrame) -> Grid:
    columns = {c: f"{c}, %" for c in table.columns_of(frame)}
    caption = (
        "Where untaught statements are right more often than the limit allows: how many of the "
        "right ones, and of the wrong ones, the named reason could explain. Nothing was taught of "
        "these subjects; a reason explains as far as it is commoner among the right ones. "
        f"{marks.FEW_NOTE}"
    )
    title = "Untaught statements above the limit: what explains them"
    first = "probe, task, template"
    shown = partial(grid.measured, few=True, sized=True)
    return grid.pivot(frame, title, first, columns, caption=caption, shown=shown)


def _modes(frame: pl.DataFrame) -> Grid:
    columns = {c: c for c in frame["column"].unique(maintain_order=True)}
    caption = (
        "MRR (R@5 and recall@5 where named) in per cent, one point switched alone: the points that "
        "are decided when tables are made. All others change questions or answers; what they "
        "change is seen by naming the results of another run in ontoprobe.beside."
    )
    return grid.pivot(frame, "Modes side by side", "model and task", columns, caption=caption)


def _reasoning(frame: pl.DataFrame) -> Grid:
    columns = [c for c in GRID_COLUMNS if c in set(frame["column"])]
    cells = table.lookup(frame)
    rows = [
        [
            grid.text(row),
            *(grid.measured(cells.get((row, c)), 3, few=True, sized=True) for c in columns),
        ]
        for row in dict.fromkeys(frame["row"])
    ]
    caption = (
        "MRR; EX explicit, IM implicit, NO not given. A dash: no row is in that setting. n: "
        "distinct rows, however many schemes, pseudowords or models ask them. "
        f"{marks.FEW_NOTE}"
    )
    heads = ["what", *columns]
    numeric = frozenset(range(1, len(heads)))
    return Grid("Figures 2, 3, 4, 8: MRR by premises", heads, rows, numeric, caption)


def _funnel(name: str, frame: pl.DataFrame) -> Grid:
    rows = [
        [grid.text(r["relation"]), grid.text(r["step"]), grid.text(r["rows_out"])]
        for r in frame.sort("position").iter_rows(named=True)
    ]
    heads = ["task", "step", "kept"]
    return Grid(f"Construction of {name}", heads, rows, frozenset({2}))
