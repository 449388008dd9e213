"""The report, from the files of a run."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.allowed import ALLOWED
from kgprobe.job import versions
from kgprobe.tables import results as house
from kgprobe.tables.answers import recorded
from kgprobe.tables.report import calibration, chapter, grid, marks
from kgprobe.tables.report.chapter import Chapter
from kgprobe.tables.report.page import Link, Report, write_report

GRAPHS = (
    "Which benchmarks of the four papers can be built on each graph that the configuration names. "
    "The funnel of a benchmark that is built says what became of every statement."
)
Rows = Sequence[Mapping[str, str]]
#: What the report prints of each model: columns of the sheet, then of the record of its answers.
OF_SHEET = "model kind source revision dtype bos note".split()
OF_RECORD = "parameters bos_resolved variant device weights".split()
#: Columns that few sheets have; the agreement with float32 of the models that have them.
OF_FEW = "quantised adapter backend".split()
OF_AGREEMENT = "largest mean equal_best".split()
#: Loss (nat per token) of sentences and of their words shuffled, share of unknown tokens.
OF_SOUND = "plain shuffled unknown".split()


def make(
    page: Path,
    results: Sequence[str],
    tables: Sequence[str],
    answers: Sequence[str],
    questions: Sequence[str],
    chapters: Sequence[str],
    allows: Sequence[str],
    experiments: Rows,
    models: Mapping[str, Mapping[str, str]],
    config: Mapping[str, Any],
) -> None:
    """Write the page. All arguments but `page` are paths of a run's files, or rows of its sheets.

    `answers`: the file of every row of `experiments`, in their order, one file may hold several;
    `allows`: ALLOWED of every own graph; `results`: RESULTS of every paper; they, `tables`,
    `answers` and `questions` are linked from the page.
    """
    numbers = house.read(results)
    asked = {row["model"]: models[row["model"]] for row in experiments}
    calibrated = calibration.chapter(numbers, asked)
    made_with: dict[str, str] = {}
    for path in answers:
        made_with |= recorded(path, "versions")
    report = Report(
        results=numbers,
        sheet=asked,
        config=config,
        models=_models(experiments, models, answers),
        experiments=[{k: v for k, v in row.items() if k != "_line"} for row in experiments],
        versions=made_with | versions(),
        chapters=[
            one for one in (calibrated, *map(chapter.read, chapters), _allowed(allows)) if one
        ],
        links=_links(page, dict.fromkeys([*results, *tables, *answers, *questions])),
    )
    write_report(page, report)


def _allowed(paths: Sequence[str]) -> Chapter | None:
    """The chapter on own graphs; None without any."""
    shown = []
    for path in paths:
        name, rows = Path(path).parent.name, schema.read(path, ALLOWED)
        order = rows.sort(~rows["built"], maintain_order=True)
        told = order.with_columns(
            built=pl.when("built").then(pl.lit("yes")).otherwise(pl.lit("no"))
        ).rename({"reason": "how much, or what is lacking"})
        shown.append(grid.records(f"What {name} allows", told.iter_rows(named=True)))
    return Chapter("graphs", "Own graphs", GRAPHS, grids=shown) if shown else None


def _models(
    experiments: Rows, models: Mapping[str, Mapping[str, str]], answers: Sequence[str]
) -> list[dict[str, object]]:
    """One row per model that was run, with what was recorded when it first was."""
    rows: dict[str, dict[str, object]] = {}
    signs = {"sound": marks.MARK, "agrees": marks.DEPARTS}
    wrong = [n for n in marks.numbers(experiments, answers) if not n.value]
    for row, path in zip(experiments, answers, strict=True):
        record = recorded(path, "model")
        told: dict[str, object] = {c: models[row["model"]].get(c, "") for c in OF_SHEET}
        told |= {c: value for c in OF_FEW if (value := models[row["model"]].get(c))}
        name = row["model"] + "".join(signs[n.metric] for n in wrong if n.model == row["model"])
        found = rows.setdefault(row["model"], {**told, "model": name})
        for columns, source in ((OF_RECORD, record), (OF_SOUND, marks.sound(path))):
            for column in columns:
                found[column] = found.get(column) or source.get(column, "")
        for apart in marks.agreement(path)[:1]:
            found |= {f"float32, {c}": apart[c] for c in OF_AGREEMENT}
    return list(rows.values())


def _links(page: Path, paths: Iterable[str]) -> list[Link]:
    """Links from the page to the files and folders, relative to it."""
    start = page.parent.parent
    links = []
    for path in paths:
        inside = Path(path).relative_to(start)
        holds = "" if Path(path).is_dir() else schema.provenance(path).get("contract", "")
        links.append(Link(str(inside), f"../{inside.as_posix()}", str(holds)))
    return links
