"""The report, from the files of a run."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.allowed import ALLOWED
from kgprobe.job import commit, versions
from kgprobe.tables.answers import folders, recorded
from kgprobe.tables.judged import read
from kgprobe.tables.report import about, grid, marks, measured, section, validity
from kgprobe.tables.report.pages import Link, Report, write_report
from kgprobe.tables.report.section import Section

GRAPHS = (
    "Which benchmarks of the four papers can be built on each graph that the configuration names. "
    "The funnel of a benchmark that is built says what became of every statement."
)
Rows = Sequence[Mapping[str, str]]
#: What the report prints of each model: columns of its row, then of the record of its answers.
OF_TABLE = "model kind source revision dtype bos note".split()
OF_RECORD = "parameters bos_resolved variant device weights".split()
#: Columns that few tables have.
OF_FEW = "quantized adapter device_map".split()
#: Loss (nat per token) of sentences and of their words shuffled, fraction of unknown tokens.
OF_COMPLETENESS = "plain shuffled unknown".split()


def make(
    page: Path,
    numbers: pl.DataFrame,
    claims: Section,
    results: Sequence[str],
    tables: Sequence[str],
    answers: Sequence[str],
    judged: Sequence[str],
    questions: Sequence[str],
    sections: Sequence[str],
    measures: Sequence[str],
    allows: Sequence[str],
    experiments: Rows,
    models: Mapping[str, Mapping[str, str]],
    config: Mapping[str, Any],
    titles: Mapping[str, str],
    descriptions: Mapping[str, str],
    configs: Sequence[str] = (),
    shipped: str | Path | None = None,
) -> None:
    """Write the pages; `page` is the first. All other arguments are paths of a run's files, or rows
    of its tables.

    `numbers`: RESULTS of every paper, from the files `results`; `claims`: the section on what they
    claim; `answers`: the file of every row of `experiments`, in their order, one file may hold
    several; `judged`: JUDGED of all papers; `questions`: of every benchmark that they name;
    `measures`: numbers measured before; `allows`: ALLOWED of every own graph. `results`, `tables`,
    `judged`, `answers` and `questions` are linked from the pages.
    `titles`: relation -> its name; `descriptions`: benchmark -> what it is; `configs`: files that
    were laid over the default configuration; `shipped`: measured numbers of control probes, for
    those that the run did not ask.
    """
    probed = {row["model"]: models[row["model"]] for row in experiments}
    valid, source = numbers, ""
    if shipped:
        extract = measured.read(Path(shipped))
        valid = validity.with_shipped(numbers, extract.results)
        if valid.height > numbers.height:
            source = (
                "Probes that this run did not make were measured by the run "
                f"{extract.header['run']} on {extract.header['date']}, "
                f"commit {extract.header['commit']}."
            )
    checked = validity.section(valid, models, source, numbers)
    made_with: dict[str, str] = {}
    for path in answers:
        made_with |= recorded(path, "versions")
    rows = [{k: v for k, v in row.items() if k != "_line"} for row in experiments]
    places = folders(questions)
    before = measured.section(numbers, places.values(), measures)
    shown = [claims, *map(section.read, sections), before, _describe_graphs(allows), checked]
    folder = page.parent.parent
    report = Report(
        run=folder.name,
        results=numbers,
        probed=probed,
        config=config,
        models=_models(experiments, models, answers),
        experiments=rows,
        versions=made_with | versions(),
        sections=[one for one in shown if one],
        benchmarks=list(
            about.benchmarks(numbers, probed, rows, read(judged), places, titles, descriptions)
        ),
        links=_links(folder, dict.fromkeys([*results, *tables, *judged, *answers, *questions])),
        commands={Path(path).stem: _command(path, configs) for path in sections}
        | {"": _command(page, configs)},
        commit=commit(),
    )
    write_report(page.parent, report)


def _command(target: str | Path, configs: Sequence[str]) -> str:
    """What makes a file of the run."""
    given = f" --configfile {' '.join(configs)}" if configs else ""
    return f"snakemake --cores all{given} -- {target}"


def _describe_graphs(paths: Sequence[str]) -> Section | None:
    """The section on own graphs; None without any."""
    shown = []
    for path in paths:
        name, rows = Path(path).parent.name, schema.read(path, ALLOWED)
        order = rows.sort(~rows["built"], maintain_order=True)
        table = order.with_columns(
            built=pl.when("built").then(pl.lit("yes")).otherwise(pl.lit("no"))
        ).rename({"reason": "how much, or what is lacking"})
        shown.append(grid.records(f"What {name} allows", table.iter_rows(named=True)))
    return Section("graphs", "Own graphs", GRAPHS, grids=shown) if shown else None


def _models(
    experiments: Rows, models: Mapping[str, Mapping[str, str]], answers: Sequence[str]
) -> list[dict[str, object]]:
    """One row per model that was run, with what was recorded when it first was."""
    rows: dict[str, dict[str, object]] = {}
    wrong = {n.model for n in marks.estimates(experiments, answers) if not n.value}
    for row, path in zip(experiments, answers, strict=True):
        record = recorded(path, "model")
        fields: dict[str, object] = {c: models[row["model"]].get(c, "") for c in OF_TABLE}
        fields |= {c: value for c in OF_FEW if (value := models[row["model"]].get(c))}
        name = row["model"] + marks.MARK * (row["model"] in wrong)
        entry = rows.setdefault(row["model"], {**fields, "model": name})
        for columns, source in ((OF_RECORD, record), (OF_COMPLETENESS, marks.completeness(path))):
            for column in columns:
                entry[column] = entry.get(column) or source.get(column, "")
    return list(rows.values())


def _links(folder: Path, paths: Iterable[str]) -> list[Link]:
    """The files and folders of a run."""
    links = []
    for path in paths:
        inside = Path(path).relative_to(folder).as_posix()
        holds = "" if Path(path).is_dir() else schema.provenance(path).get("contract", "")
        links.append(Link(inside, str(holds)))
    return links
