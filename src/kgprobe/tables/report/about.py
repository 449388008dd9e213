"""Sections about a model with the probes it answered, and about a benchmark with its answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from kgprobe.tables.exports import origins
from kgprobe.tables.exports.folders import ExportError
from kgprobe.tables.report import grid, headline, said, validity
from kgprobe.tables.report.blocks import Room, anchor, slug
from kgprobe.tables.report.grid import Cell, Grid
from kgprobe.tables.report.section import Section
from kgprobe.tables.views import PLAIN, View

Models = Mapping[str, Mapping[str, str]]
Rows = Sequence[Mapping[str, str]]
Names = dict[tuple[str, str], Cell]
HEADS = {"group": "relation or pattern"}
#: tables of numbers by relation or task, by paper
PARTS = (
    View(
        "bear", "Accuracy by relation, %",
        {"paper": ["bear"], "metric": ["accuracy"], "slice": [""], **PLAIN},
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
        {"paper": ["autoprompt"], "metric": ["P@1"], "slice": [""], **PLAIN},
        ["group"], ["model", "prompt", "method"], HEADS,
    ),
)  # fmt: skip
WORDS = {("prompt", "templates"): "", ("method", "sentence"): "", ("method", "predict"): ""}


def benchmark_link(paper: str, name: str) -> str:
    """Return the link to the section on a benchmark's questions."""
    return f"{paper}-questions.html#benchmark-{slug(name)}"


def link_models(probed: Models) -> Names:
    """Return row headers for models, each with a link to its page."""
    return {
        (of, name): replace(cell, href=f"models.html#model-{slug(name)}")
        for (of, name), cell in grid.models(probed).items()
    }


def headlines(results: pl.DataFrame, names: Names, **where: Sequence[str]) -> list[Grid]:
    """Return the headline's tables restricted to such numbers, if there are any."""
    numbers, grids = headline.principal(results), []
    for view in headline.blocks(results):
        kept = {k: [v for v in view.where.get(k, values) if v in values]
                for k, values in where.items()}  # fmt: skip
        narrowed = view.where_also(**kept)
        if all(kept.values()) and narrowed.select(numbers).height:
            grids.append(grid.of_view(narrowed, numbers, names=names))
    return grids


def models(
    results: pl.DataFrame, probed: Models, rows: Sequence[Mapping[str, object]], experiments: Rows
) -> Iterator[Section]:
    """Yield a section for each model; `rows`: its record, `experiments`: rows of experiments."""
    for row, (name, given) in zip(rows, probed.items(), strict=True):
        numbers = results.filter(model=name)
        grids = headlines(results, {}, model=[name])
        checked = numbers.filter(metric="valid").select(validity.PROBE)
        if checked.height:
            view = validity.VIEW.where_also(model=[name])
            checks = results.join(checked, on=validity.PROBE, how="semi")
            grids.append(replace(grid.of_view(view, checks), title="Validity"))
        probes = [{k: v for k, v in one.items() if k != "model"} for one in experiments
                  if one["model"] == name]  # fmt: skip
        details = [{"what": key, "value": value} for key, value in row.items() if value != ""]
        folded = [grid.records("What it was asked", probes), grid.records("The model", details)]
        note = f": {given['note'].rstrip('.')}" if given.get("note") else ""
        lead = f"{given['kind'].capitalize()} model from {given['source']}{note}."
        yield Section(f"model-{slug(name)}", name, lead, grids=grids, folded=folded)


def benchmarks(
    results: pl.DataFrame,
    probed: Models,
    experiments: Rows,
    judged: pl.DataFrame,
    folders: Mapping[str, Path],
    titles: Mapping[str, str],
    descriptions: Mapping[str, str],
) -> Iterator[Section]:
    """Yield a page for each paper: a section for each benchmark, and for its questions by relation;
    `judged`: JUDGED of the probes of `experiments`; `folders`: of the benchmarks."""
    asked = {row["benchmark"]: row["paper"] for row in experiments}
    for paper in dict.fromkeys(asked.values()):
        parts: list[Section] = []
        for name in (name for name, of in asked.items() if of == paper):
            heads, sections, examples = link_models(probed), list[Section](), list[Grid]()
            templates = said.first_templates(folders[name])
            for kind in said.HEADS:
                questions, answered = said.answered(folders[name], experiments, judged, kind)
                if not questions or (kind and not answered):
                    continue
                pages = list(said.by_relation(name, questions, answered, titles, templates, kind))
                heads = {**_places(paper, pages, questions, titles), **heads}
                sections += [replace(one, is_folded=True) for one in pages]
                examples.append(said.examples(questions, answered, kind))
            grids = headlines(results, heads, benchmark=[name])
            is_ours = pl.col("method") != "published"
            numbers = results.filter(pl.col("group") != "", is_ours, benchmark=name)
            shown = [replace(view, words=WORDS) for view in PARTS if view.select(numbers).height]
            folded = [*(grid.of_view(view, numbers, names=heads) for view in shown), *examples]
            words = descriptions.get(name, "").rstrip(".")
            lead = f"{words[0].upper()}{words[1:]}. " if words else ""
            lead += _licenses(folders[name])
            parts.append(Section(f"benchmark-{slug(name)}", name, lead, (), grids, folded))
            parts += sections
        # the part before the colon is shown in the menu of pages
        title = f"{headline.PAPERS[paper]} questions: gold answers and answers of the models"
        yield Section(f"{paper}-questions", title, "", parts=parts)


def _licenses(folder: Path) -> str:
    """Describe the licenses of a benchmark's questions, each with its source."""
    try:
        if released := origins.unlicensed(folder):
            return f"These questions are from {released.title}, which has no license."
        sources = origins.of(folder)
    except (ExportError, OSError):  # a user-supplied graph, or no items
        return "These questions have the license of the data that they were made from."
    named = " and ".join(f"{s.license} ({s.title})" for s in sources)
    return f"License of the questions: {named}."


def _places(
    paper: str,
    sections: Sequence[Section],
    questions: Sequence[said.Question],
    titles: Mapping[str, str],
) -> Names:
    """Return row headers for the relations, each with a link to its questions."""
    links, room = {}, Room()
    names = {grid.with_id(one.relation, titles): one.relation for one in questions}
    for section in sections:
        for table in section.grids:
            relation = names[table.title]
            place = room.anchor(anchor(section.name, table.title))
            href = f"{paper}-questions.html#{place}"
            links["group", relation] = replace(grid.titled(relation, titles), href=href)
    return links
