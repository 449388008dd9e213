"""AutoPrompt's section of the report: views of its RESULTS, texts of prompts, figures."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import polars as pl

from kgprobe import schema
from kgprobe.probes.prompts.search.settings import NOT_RELEASED
from kgprobe.tables.autoprompt import views
from kgprobe.tables.autoprompt.numbers import MAJORITY
from kgprobe.tables.report import draw, grid
from kgprobe.tables.report.grid import Cell, filled_in
from kgprobe.tables.report.section import Drawing, Section, drawing

LEAD = (
    "A prompt with a few trigger tokens, found by gradients and shared by all examples of a task, "
    "queries a frozen model (Shin et al. 2020). What the triggers learn about the distribution of "
    "the answers is not knowledge of the model, so every table includes baselines and controls."
)
NOTES = (
    "Per cent with 95 % intervals; facts: mean over relations, with subjects resampled within "
    "their relation. Ties count with their expected value under random order.",
    "Printed values appear next to ours only if model and data are the paper's; all others are "
    "quoted in separate rows. A searched prompt has seen training facts, a manual one has not. "
    "Every prompt gives a lower bound on what a model knows.",
)
#: appended to a number below that of the most frequent training label
BELOW = " ‡"
BELOW_NOTE = (
    "‡: below the majority baseline, which gives the most frequent label of train to all of the "
    "same examples. Best constant: the most frequent label of the examples themselves, an oracle. "
    "Total variation: half the sum of the absolute differences between the proportions of objects "
    "in train and test."
)
CONTROLS = "Control models were trained on known facts: they only check the probes."
OPTIMISTIC = (
    "Figure 2 is optimistic: prompts are selected on the whole dev set, whose score is also "
    "reported."
)
OTHERWISE = "The released code differs: "
#: methods of Figure 2 as named in its legend
NAMES = {"searched": "AutoPrompt", "finetuned": "fine-tuned"}
Row = Mapping[str, Any]


def majorities(results: pl.DataFrame) -> Callable[[Row], float | None]:
    """Return a function of a row of RESULTS: the accuracy of the most frequent training label on
    the same examples if the row's value is lower, else None."""
    names = [name for name in schema.RESULTS.key if name != "metric"]
    rows = results.filter(metric=MAJORITY)
    at = dict(zip(rows.select(names).rows(), rows["value"], strict=True))

    def beating(row: Row) -> float | None:
        is_one = row["metric"] in ("P@1", "accuracy")
        majority = at.get(tuple(row[name] for name in names)) if is_one else None
        return majority if majority is not None and row["value"] < majority - 1e-9 else None

    return beating


def as_printed(cell: Cell, row: Row) -> Cell:
    """Show a printed figure with the precision of the paper."""
    if row["method"] == "published":
        digits = views.COUNTS.get(row["metric"], 2)
        return Cell(grid.number(row["value"], digits), sort=row["value"], muted=True)
    return cell


def select_reported(results: pl.DataFrame) -> pl.DataFrame:
    """Sort RESULTS for the tables and keep printed figures only of benchmarks that were asked."""
    benchmarks = results.filter(method="predict")["benchmark"].unique().to_list()
    quoted = pl.col("benchmark").is_in(benchmarks) | (pl.col("method") != "published")
    return views.ordered(results.filter(quoted))


def section(
    results: pl.DataFrame,
    models: Mapping[str, Mapping[str, str]],
    records: Mapping[str, Iterable[Mapping[str, object]]],
    mode: str,
    selection: str = "",
    remarks: Sequence[str] = (),
    funnels: Mapping[str, pl.DataFrame] | None = None,
) -> Section:
    """Build the section from RESULTS; `models`: rows of models.tsv by name; `records`: text tables
    by title; `remarks`: notes of the tasks; `funnels`: benchmark -> FUNNEL of its construction."""
    chosen = select_reported(results)
    beating, names = majorities(chosen), grid.models(models)

    def mark_below_majority(cell: Cell, row: Row) -> Cell:
        """Mark a number that is below the majority baseline, and add the baseline."""
        if (above := beating(row)) is None:
            return as_printed(cell, row)
        small = f"{cell.small}; below majority {grid.number(above)}".removeprefix("; ")
        return replace(cell, text=cell.text + BELOW, small=small)

    grids, folded = (
        [grid.of_view(view, chosen, names=names, also=mark_below_majority) for view in part]
        for part in views.of(chosen)
    )
    for title, rows in records.items():
        (folded if title.startswith("Table 7") else grids).append(grid.records(title, rows))
    if chosen["benchmark"].is_in(views.FACTS).any() and "published" in results["method"]:
        figures = results.filter(pl.col("group") != "", method="published")
        folded.append(grid.of_view(views.PRINTED6, views.ordered(figures), also=as_printed))
    for benchmark, frame in (funnels or {}).items():
        folded.append(grid.funnel(frame, f"How {benchmark} was made"))
    notes = [f"Search mode {mode}.", *NOTES, BELOW_NOTE]
    # warnings about optimistic choices, and limits of a mode
    notes += [OPTIMISTIC] * (selection == "full" and "low_data" in chosen["method"])
    notes += [f"{OTHERWISE}{'; '.join(NOT_RELEASED)}."] * (mode == "released") + [*remarks]
    notes += [CONTROLS] * ("trained-on" in chosen["slice"])
    shown = filled_in(grids), filled_in(folded)
    return Section("autoprompt", "Searched prompts", LEAD, notes, *shown, [*drawings(chosen)])


def drawings(results: pl.DataFrame) -> Iterator[Drawing]:
    """Draw Figure 2 of every benchmark, Figure 3 of every benchmark, model and k."""
    for (benchmark,), rows in _parts(views.FIGURE2.select(results), "benchmark"):
        points = [
            draw.point(row, line=f"{row['model']}, {NAMES.get(row['prompt'], row['prompt'])}",
                       at=int(row["size"]))
            for row in rows.rows(named=True)
        ]  # fmt: skip
        title, plot = f"Figure 2: {benchmark}", lines(points, "training examples")
        name = f"autoprompt_figure2_{benchmark}"
        yield drawing("autoprompt", name, title, views.FIGURE2.caption, plot, rows)
    for index, (key, rows) in enumerate(_parts(views.FIGURE3.select(results), *views.FIGURE3.rows)):
        points = [
            draw.point(row, line=f"{row['labels']} label token{'s' * (row['labels'] != '1')}",
                       at=int(row["triggers"]))
            for _, part in _parts(rows, "labels") for row in part.rows(named=True)
        ]  # fmt: skip
        title, plot = f"Figure 3: {key[0]}, {key[1]}, k {key[2]}", lines(points, "trigger tokens")
        name = f"autoprompt_figure3_{index}"
        yield drawing("autoprompt", name, title, views.FIGURE3.caption, plot, rows)


def _parts(rows: pl.DataFrame, *names: str) -> Iterable[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Group rows by some dimensions, in numeric order."""
    numeric = [pl.col(name).cast(pl.Int64, strict=False) for name in names]
    return rows.sort(*numeric, maintain_order=True).group_by(*names, maintain_order=True)


def lines(points: list[dict[str, Any]], title: str) -> draw.Chart:
    """Plot dev accuracy by number of examples or trigger tokens (`at`), joined by `line`; points
    with the same x value are next to each other."""
    names = list(dict.fromkeys(point["line"] for point in points))
    places = sorted({point["at"] for point in points})
    aside = alt.XOffset("line:N", scale=alt.Scale(domain=names))
    x = alt.X("at:O", title=title, sort=places, scale=alt.Scale(padding=0.6),
              axis=alt.Axis(labelAngle=0))  # fmt: skip
    base = draw.chart(points, "line", "at").encode(x=x, xOffset=aside)
    look = draw.encode_points("line", draw.apart(names))
    layers = draw.lines(base, draw.numbers(alt.Y, "dev accuracy, %"), look)
    return draw.set_size(*layers, height=240)
