"""The report and its figures, from the files of a run."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import versions
from kgprobe.tables import bear_figures, chapter, draw, gather, marks
from kgprobe.tables.report import Example, Link, Report, write_report

Rows = Sequence[Mapping[str, str]]
#: What the report prints of each model: columns of the sheet, then of the record of its scores.
OF_SHEET = "model kind source revision dtype bos note".split()
OF_RECORD = "parameters bos_resolved variant device weights".split()
#: Loss (nat per token) of sentences and of their words shuffled, share of unknown tokens.
OF_SOUND = "plain shuffled unknown".split()


def make(
    page: Path,
    tables: Sequence[str],
    scores: Sequence[str],
    questions: Sequence[str],
    funnels: Sequence[str],
    experiments: Rows,
    models: Mapping[str, Mapping[str, str]],
    names: Mapping[str, str],
    descriptions: Mapping[str, str],
    config: Mapping[str, Any],
    seed: int,
    chapters: Sequence[str] = (),
) -> None:
    """Write the page and, in `figures` beside it, every figure as SVG and PNG.

    All arguments but `page` are paths of a run's files, or rows of its sheets.
    """
    frames = {Path(p).stem: schema.read(p, schema.TABLE) for p in tables}
    answered = gather.probes(experiments, models, scores)
    folders = {Path(p).parent.name: Path(p).parent for p in questions}
    figures = list(gather.figures(answered, frames, names))
    for drawn in figures:
        draw.save(drawn.figure, page.parent / "figures" / drawn.name)
    benchmarks = list(folders)
    report = Report(
        made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        probes=answered,
        tables=frames,
        config=config,
        models=_models(experiments, models, scores),
        experiments=[{k: v for k, v in row.items() if k != "_line"} for row in experiments],
        versions={**_recorded(scores), **versions()},
        drawings=[drawn.drawing() for drawn in figures],
        example=_example(answered, scores, folders, seed),
        funnels={
            b: schema.read(f, schema.FUNNEL)
            for f in funnels
            for b in benchmarks
            if b.split("_")[0] == Path(f).parent.name.split("_")[0] and "released" not in b
        },
        relation_names=names,
        descriptions={b: descriptions[b] for b in benchmarks},
        links=_links(page, [*tables, *scores, *questions]),
        chapters=[chapter.read(path) for path in chapters],
    )
    write_report(page, report)


def _models(
    experiments: Rows, models: Mapping[str, Mapping[str, str]], scores: Sequence[str]
) -> list[dict[str, object]]:
    """One row per model that was run, with what was recorded when it was."""
    rows: dict[str, dict[str, object]] = {}
    shown = marks.names(experiments, scores)
    for row, path in zip(experiments, scores, strict=True):
        recorded = schema.provenance(path).get("model")
        record = recorded if isinstance(recorded, dict) else {}
        found: dict[str, object] = {c: models[row["model"]].get(c, "") for c in OF_SHEET}
        found |= {"model": shown[row["model"]], **{c: record.get(c, "") for c in OF_RECORD}}
        found |= {c: marks.sound(path).get(c, "") for c in OF_SOUND}
        rows.setdefault(row["model"], found)
    return list(rows.values())


def _recorded(scores: Sequence[str]) -> dict[str, str]:
    """Versions that the scores were made with."""
    found: dict[str, str] = {}
    for path in scores:
        recorded = schema.provenance(path).get("versions")
        found |= recorded if isinstance(recorded, dict) else {}
    return found


def _example(
    answered: Sequence[gather.Probe], scores: Sequence[str], folders: Mapping[str, Path], seed: int
) -> Example | None:
    """One item worked out by the first model that is no control, else by the first."""
    order = sorted(range(len(answered)), key=lambda i: (answered[i].control, i))
    first = order[0]
    (study,) = gather.studies([answered[first]], [scores[first]], folders, seed)
    item = bear_figures.example_item(study)
    template = study.templates[0]
    frame = schema.read(scores[first], schema.SCORES)
    options = bear_figures.example(study, answered[first], frame, item, template)
    relation = study.items.filter(pl.col("item") == item)["relation"][0]
    return Example(answered[first].label, relation, options)


def _links(page: Path, paths: Sequence[str]) -> list[Link]:
    """Links from the page to the files, relative to it."""
    start = page.parent.parent
    links = []
    for path in paths:
        inside = Path(path).relative_to(start)
        contract = schema.provenance(path).get("contract", "")
        links.append(Link(str(inside), f"../{inside.as_posix()}", str(contract)))
    return links
