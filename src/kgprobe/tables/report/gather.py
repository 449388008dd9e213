"""Assemble the report from the files of a run."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.allowed import ALLOWED
from kgprobe.experiments import read_table
from kgprobe.job import JobContext, commit, versions
from kgprobe.tables.answers import folders, recorded
from kgprobe.tables.report import about, grid, marks, measured, section, validity
from kgprobe.tables.report.pages import Report, write_report
from kgprobe.tables.report.section import Section

GRAPHS = (
    "Which benchmarks of the four papers can be built from each graph in the configuration. The "
    "funnel of a benchmark shows what happened to every statement."
)
Rows = Sequence[Mapping[str, str]]
#: Columns that the report prints of each model, from its row, then from the record of its answers.
OF_TABLE = "model kind source revision dtype bos note".split()
OF_RECORD = "parameters bos_resolved variant device weights".split()
#: Columns that few tables have.
OF_FEW = "quantized adapter device_map".split()
#: Loss (nats per token) of sentences and of their words shuffled, fraction of unknown tokens.
OF_COMPLETENESS = "plain shuffled unknown".split()


def make(run: JobContext, numbers: pl.DataFrame, judged: pl.DataFrame, claims: Section) -> None:
    """Write the pages of a run. `numbers`, `judged`: RESULTS and JUDGED of every paper; `claims`:
    the section on claims. Several rows of experiments may share a file of answers; `configs`
    override the default configuration; `validity`, if any: measured numbers of control probes
    outside the run."""
    given, params, page = run.input, run.params, Path(run.output.page)
    experiments, configs = params.experiments, params.configs
    probed = {row["model"]: params.models[row["model"]] for row in experiments}
    valid, source = numbers, ""
    for shipped in given.validity[:1]:
        extract = measured.read(Path(shipped))
        valid = validity.with_shipped(numbers, extract.results)
        if valid.height > numbers.height:
            source = (
                "Probes that are not part of this run were measured by the run "
                f"{extract.header['run']} on {extract.header['date']}, commit "
                f"{extract.header['commit']}."
            )
    checked = validity.section(valid, params.models, source, numbers)
    made_with = {k: v for path in given.answers for k, v in recorded(path, "versions").items()}
    rows = [{k: v for k, v in row.items() if k != "_line"} for row in experiments]
    places = folders(given.questions)
    before = measured.section(numbers, places.values(), given.measured)
    graphs = _describe_graphs(given.allows)
    shown = [claims, *map(section.read, given.sections), before, graphs, checked]
    linked = [given.results, given.tables, given.judged, given.answers, given.questions]
    titles = {row["relation"]: row["note"] for path in given.names for row in read_table(path)}
    sets = about.benchmarks(numbers, probed, rows, judged, places, titles, params.descriptions)
    folder = page.parent.parent
    report = Report(
        run=folder.name,
        results=numbers,
        probed=probed,
        config=run.config,
        models=_models(experiments, params.models, given.answers),
        experiments=rows,
        versions=made_with | versions(),
        sections=[one for one in shown if one],
        benchmarks=list(sets),
        links={
            path.relative_to(folder).as_posix(): ""
            if path.is_dir()
            else str(schema.provenance(path).get("contract", ""))
            for path in map(Path, chain(*linked))
        },
        commands={Path(path).stem: _command(path, configs) for path in given.sections}
        | {"": _command(page, configs)},
        commit=commit(),
    )
    write_report(page.parent, report)


def _command(target: str | Path, configs: Sequence[str]) -> str:
    """Return the command that makes a file of the run."""
    given = f" --configfile {' '.join(configs)}" if configs else ""
    return f"snakemake --cores all{given} -- {target}"


def _describe_graphs(paths: Sequence[str]) -> Section | None:
    """Build the section on user-supplied graphs; None without any."""
    shown = []
    for path in paths:
        name, rows = Path(path).parent.name, schema.read(path, ALLOWED)
        order = rows.sort(~rows["built"], maintain_order=True)
        built = pl.when("built").then(pl.lit("yes")).otherwise(pl.lit("no"))
        table = order.with_columns(built=built).rename({"reason": "how much, or what is missing"})
        shown.append(grid.records(f"What {name} allows", table.iter_rows(named=True)))
    return Section("graphs", "Own graphs", GRAPHS, grids=shown) if shown else None


def _models(
    experiments: Rows, models: Mapping[str, Mapping[str, str]], answers: Sequence[str]
) -> list[dict[str, object]]:
    """Return one row per model that was run, with the record of its first answers."""
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
