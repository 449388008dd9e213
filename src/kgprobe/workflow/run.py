"""The contents of a run: settings, models and experiments, checked before anything is executed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kgprobe import experiments
from kgprobe.config import ConfigError, file_of, models_of
from kgprobe.probes import prompt_settings
from kgprobe.settings import Settings
from kgprobe.templates import FORMS
from kgprobe.workflow.benchmarks import BenchmarkEntry, check_names, known_benchmarks
from kgprobe.workflow.sources import data_parts, files

#: a row of a table
Row = Mapping[str, str]
PROMPTS = ("templates", "soft", *FORMS, *prompt_settings.PROMPTS)
#: vocabulary and templates of LAMA that fact retrieval and relation extraction need
LAMA_FILES = ("relations.jsonl", "optiprompt", "vocab/common_vocab_cased.txt")
RELEASED_BEAR = {"bear_released": "BEAR", "bear_big_released": "BEAR-big"}


@dataclass(frozen=True)
class Run:
    """Settings, models and benchmarks by name, and the probes of the table of experiments."""

    settings: Settings
    benchmarks: Mapping[str, BenchmarkEntry]
    models: Mapping[str, Row]
    rows: Sequence[Row]

    def probes(self, paper: str | None = None, *methods: str) -> list[Row]:
        """Return the rows of a paper whose method belongs to these modules (default: all, any)."""
        return [
            row
            for row in self.rows
            if paper in (None, row["paper"])
            and (not methods or row["method"].split("-")[0] in methods)
        ]

    def probed(self, paper: str | None = None) -> list[str]:
        """Return the benchmarks that the experiments of a paper name, in their order."""
        return list(dict.fromkeys(row["benchmark"] for row in self.probes(paper)))

    def is_control(self, row: Row) -> bool:
        """Return whether a control model answers a row."""
        return experiments.is_control(self.models[row["model"]])


def read_run(settings: Settings, files: Sequence[str | Path] = ()) -> Run:
    """Read the run of a configuration loaded from `files`, the last one taking precedence. Raises
    ConfigError or TableError for an unknown name."""
    from kgprobe.benchmarks.ontoprobe.modes import resolve

    graphs = settings.sources.graphs
    if twice := sorted(set(graphs) & set(settings.sources.dumps)):
        raise ConfigError(f"sources.graphs and sources.dumps both have {', '.join(twice)}")
    if settings.attributes.graph not in ("world", "trex", *graphs):
        raise ConfigError(
            f"attributes.graph is {settings.attributes.graph!r}; valid: world, trex, "
            f"sources.graphs ({', '.join(graphs) or 'none'})"
        )
    check_names(graphs)
    table = settings.sources.endpoints
    endpoints = [row["id"] for row in experiments.read_table(experiments.located(table))]
    for graph in ("wikidata", "dbpedia"):
        chosen = getattr(settings.sources, graph)
        if chosen.access == "live" and chosen.endpoint not in endpoints:
            where = file_of(["sources", graph, "endpoint"], files)
            raise ConfigError(
                f"{where}: sources.{graph}.endpoint is {chosen.endpoint!r}"
                f"{experiments.nearest(chosen.endpoint, endpoints)}; {table} has "
                f"{', '.join(endpoints)}"
            )
    benchmarks, models = known_benchmarks(graphs), models_of(settings)
    for section in ("models", "published", "transfer"):
        for name in getattr(settings.autoprompt, section):
            if name not in models:
                where = file_of(["autoprompt", section, name], files)
                raise ConfigError(
                    f"{where}: autoprompt.{section} has the unknown model {name!r}"
                    f"{experiments.nearest(name, models)}; valid: {', '.join(models)}"
                )
    rows = read_experiments(experiments.located(settings.tables.experiments), benchmarks, models)
    for name, value in settings.ontoprobe.switches.items():
        try:
            resolve(settings.ontoprobe.mode, {name: value})
        except ValueError as problem:
            where = file_of(["ontoprobe", "switches", name], files)
            raise ConfigError(f"{where}: {problem}") from None
    return Run(settings, benchmarks, models, rows)


def read_experiments(
    path: str, benchmarks: Mapping[str, BenchmarkEntry], models: Mapping[str, Row]
) -> list[dict[str, str]]:
    """Read the probes of a table of experiments and check every name in it. Raises TableError."""
    papers = {name: benchmark.paper for name, benchmark in benchmarks.items()}
    schema = experiments.read_schema(
        experiments.located("workflow/schemas/experiments.schema.json")
    )
    rows = experiments.products(experiments.read_rows(path, schema), path, models, papers, PROMPTS)
    experiments.check_experiments(rows, path, models)
    if wrong := prompt_settings.problems(rows):
        raise experiments.TableError(f"{path}, " + "\n  ".join(wrong))
    experiments.check_papers(rows, path, papers)
    return experiments.with_raw(rows)


def switches(settings: Settings, *names: str) -> dict[str, str]:
    """Return the values of OntoProbe's switches: all, or those named."""
    from kgprobe.benchmarks.ontoprobe.modes import resolve

    chosen = settings.ontoprobe
    values = asdict(resolve(chosen.mode, chosen.switches))
    return {name: values[name] for name in names or values}


def check(run: Run) -> None:
    """Check that inputs of the experiments that no rule makes exist: files, and the URL of a
    server. Raises ConfigError or TableError."""
    sources = run.settings.sources
    for name in run.probed():
        benchmark = run.benchmarks[name]
        if name.startswith("onto_released") and sources.ontoprobe.access == "local":
            files(f"{sources.ontoprobe.folder}/{part}" for part in ("memorizing", "ontology"))
        elif name in RELEASED_BEAR and sources.bear.access == "local":
            files([f"{sources.bear.folder}/{RELEASED_BEAR[name]}"])
        elif name == "lama":
            data_parts(run.settings, "lama", ["trex_original", "relations.jsonl"])
        elif name in ("bear_big", "bear_lite") and sources.wikidata.access == "local":
            files(sources.wikidata.files)
        elif benchmark.paper == "autoprompt":
            data_parts(run.settings, benchmark.source, benchmark.parts)
            if benchmark.source in ("lama", "trex_sentences"):
                data_parts(run.settings, "lama", LAMA_FILES)
    variable = run.settings.api.url_variable
    for row in run.rows:
        if run.models[row["model"]]["kind"] == "api" and not os.environ.get(variable):
            raise experiments.TableError(
                f"{run.settings.tables.experiments}, line {row['_line']}: set the environment "
                f"variable {variable} to the base URL of the server of {row['model']!r}, for "
                "example http://127.0.0.1:8000/v1"
            )
