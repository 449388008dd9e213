"""Pages about one thing: a model with all that it was asked, a benchmark with all who answered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from kgprobe.tables.exports import origins
from kgprobe.tables.exports.folders import ExportError
from kgprobe.tables.report import calibration, grid, headline, said
from kgprobe.tables.report.blocks import slug
from kgprobe.tables.report.chapter import Chapter
from kgprobe.tables.report.grid import Cell, Grid
from kgprobe.tables.views import View

Sheet = Mapping[str, Mapping[str, str]]
Rows = Sequence[Mapping[str, str]]
Names = dict[tuple[str, str], Cell]
HEADS = {"group": "relation or pattern"}
#: the numbers of a relation or task, by paper: what stands for it
PARTS = (
    View(
        "bear", "Accuracy by relation, %",
        {"paper": ["bear"], "metric": ["accuracy"], "slice": [""], "setting": ["{}"]},
        ["group"], ["model", "prompt", "method"], HEADS,
    ),
    View(
        "attributes", "Metric @1 by pattern, %",
        {"paper": ["attributes"], "metric": ["value"], "k": ["1"], "pooling": ["best"],
         "alpha": ["exact"], "gold": ["own"], "drawn": [""], "slice": [""]},
        ["group"], ["model", "method"], HEADS,
    ),
    View(
        "autoprompt", "P@1 by relation, %",
        {"paper": ["autoprompt"], "metric": ["P@1"], "slice": [""], "setting": ["{}"]},
        ["group"], ["model", "prompt", "method"], HEADS,
    ),
)  # fmt: skip
WORDS = {("prompt", "templates"): "", ("method", "sentence"): "", ("method", "predict"): ""}


def linked(sheet: Sheet) -> Names:
    """How models stand in the heads of rows, with the page of each."""
    return {
        (of, name): replace(cell, href=f"model-{slug(name)}.html")
        for (of, name), cell in grid.models(sheet).items()
    }


def headlines(results: pl.DataFrame, names: Names, **where: Sequence[str]) -> list[Grid]:
    """The headline's tables as far as they hold such numbers."""
    own, found = headline.principal(results), []
    for view in headline.blocks(results):
        kept = {k: [v for v in view.where.get(k, values) if v in values]
                for k, values in where.items()}  # fmt: skip
        narrowed = view.where_also(**kept)
        if all(kept.values()) and narrowed.chosen(own).height:
            found.append(grid.of_view(narrowed, own, names=names))
    return found


def models(
    results: pl.DataFrame, sheet: Sheet, rows: Sequence[Mapping[str, object]], experiments: Rows
) -> Iterator[Chapter]:
    """A page for each model; `rows`: what was recorded of it, `experiments`: what it was asked."""
    for row, (name, given) in zip(rows, sheet.items(), strict=True):
        own = results.filter(model=name)
        grids = headlines(results, {}, model=[name])
        calibrated = own.filter(metric="calibrated").select(calibration.PROBE)
        if calibrated.height:
            view = calibration.VIEW.where_also(model=[name])
            found = results.join(calibrated, on=calibration.PROBE, how="semi")
            grids.append(replace(grid.of_view(view, found), title="Calibration"))
        asked = [{k: v for k, v in one.items() if k != "model"} for one in experiments
                 if one["model"] == name]  # fmt: skip
        told = [{"what": key, "value": value} for key, value in row.items() if value != ""]
        folded = [grid.records("What it was asked", asked), grid.records("The model", told)]
        note = f": {given['note'].rstrip('.')}" if given.get("note") else ""
        lead = f"{given['kind'].capitalize()} model from {given['source']}{note}."
        yield Chapter(f"model-{slug(name)}", name, lead, grids=grids, folded=folded)


def benchmarks(
    results: pl.DataFrame,
    sheet: Sheet,
    experiments: Rows,
    answers: Sequence[str | Path],
    folders: Mapping[str, Path],
    titles: Mapping[str, str],
    descriptions: Mapping[str, str],
) -> Iterator[Chapter]:
    """A page for each benchmark, and those of its relations; `answers`: the file of each of
    `experiments`; `folders`: of the benchmarks."""
    for name in dict.fromkeys(row["benchmark"] for row in experiments):
        heads: Names = linked(sheet)
        pages: list[Chapter] = []
        examples: list[Grid] = []
        for kind in said.HEADS:
            asked, answered = said.answered(folders[name], experiments, answers, kind)
            if not asked or (kind and not answered):
                continue
            wordings = said.wordings(folders[name])
            made = list(said.by_relation(name, asked, answered, titles, wordings, kind))
            for relation, link in _places(made, asked, titles).items():
                heads.setdefault(("group", relation), link)
            pages += made
            examples.append(said.examples(asked, answered, kind))
        grids = headlines(results, heads, benchmark=[name])
        own = results.filter(pl.col("group") != "", pl.col("method") != "published", benchmark=name)
        for view in PARTS:
            if view.chosen(own).height:
                grids.append(grid.of_view(replace(view, words=WORDS), own, names=heads))
        grids += examples
        told = descriptions.get(name, "").rstrip(".")
        lead = f"{told[0].upper()}{told[1:]}. " if told else ""
        lead += _licences(folders[name])
        title = f"{name}: questions and answers"
        yield Chapter(f"benchmark-{slug(name)}", title, lead, grids=grids)
        yield from pages


def _licences(folder: Path) -> str:
    """Under which licenses the questions of a benchmark stand, each with its source."""
    try:
        sources = origins.of(folder)
    except (ExportError, OSError):  # a graph of the user's own, or no items
        return "These questions stand under the license of what they were made from."
    named = " and ".join(f"{s.licence} ({s.title})" for s in sources)
    return f"The questions stand under {named}."


def _places(
    pages: Sequence[Chapter], asked: Sequence[said.Question], titles: Mapping[str, str]
) -> dict[str, Cell]:
    """Where the questions of each relation stand."""
    found = {}
    names = {said.title(one.relation, titles): one.relation for one in asked}
    for page in pages:
        for made in page.grids:
            relation = names[made.title]
            href = f"{slug(page.name)}.html#{slug(made.title)}"
            found[relation] = replace(grid.titled(relation, titles), href=href)
    return found
