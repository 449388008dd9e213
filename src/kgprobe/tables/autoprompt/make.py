"""Write AutoPrompt's RESULTS, tables and section from the files of a run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.job import JobContext
from kgprobe.tables import baselines, judged, results, views
from kgprobe.tables.answers import folders
from kgprobe.tables.autoprompt import numbers, published, texts
from kgprobe.tables.autoprompt import section as page_of
from kgprobe.tables.autoprompt import views as own_views
from kgprobe.tables.autoprompt.numbers import EXTRACTION, Answers
from kgprobe.tables.report import marks, section
from kgprobe.tables.results import Number

#: titles of the tables of texts
PROMPTS = "Table 3: found prompts, filled with an example"
RELATIONS = "Table 7: prompts by relation"
CONTEXTS = "Table 8: relation extraction, examples (+: right)"


def measure(
    answers: Sequence[Answers],
    figures: Sequence[Number],
    names: Mapping[str, str],
    trained_on: pl.DataFrame | None = None,
    seed: int = 0,
) -> Iterator[Number]:
    """Yield every number of some answers, with its printed counterpart (from `figures`) if there is
    one; `names`: model -> its printed name; `trained_on`: frame TRAINED_ON."""
    printed = published.by_key(figures)
    for benchmark in dict.fromkeys(one.benchmark for one in answers):
        those = [one for one in answers if one.benchmark == benchmark]
        size = max(one.size for one in those)
        # a figure of other facts, even of one relation, is no reference
        whole = {} if any(one.is_sampled for one in those) else printed
        for number in numbers.of_benchmark(those, seed):
            yield published.beside(number, whole, "", size)
        for one in those:
            if one.of_classes:
                ours = numbers.classes(one, seed)
            elif one.benchmark in EXTRACTION:
                ours = numbers.extraction(one, seed)
            else:
                ours = numbers.facts(one, trained_on, seed)
            name = names.get(one.probe.model, one.probe.model)
            known = {} if one.is_sampled else printed
            yield from (published.beside(number, known, name, one.size) for number in ours)
        yield from numbers.differences(those, seed)
    yield from numbers.memory(answers, seed)


def tabulate(run: JobContext) -> None:
    """Write RESULTS, JUDGED, views of RESULTS as TSV, and the section. Folders in `tasks` contain a
    benchmark, those in `prompts` prompt files; `settings` contains the configuration section of
    every row."""
    params, seed = run.params, run.params.seed
    models, mode, swept_files = params.models, params.settings["mode"], run.input.get("sweeps", [])
    places = folders(run.input.tasks)
    answers = numbers.answered(
        params.rows, models, params.outcomes, places, mode, params.settings["given"], seed
    )
    printed = Path(run.input.published[0]).parent
    figures, files = published.read(printed), texts.read(run.input.get("prompts", []))
    names = {model: row.get("published", "") or model for model, row in models.items()}
    trained_on = run.input.get("trained_on")
    known = schema.read(trained_on, schema.TRAINED_ON) if trained_on else None
    measured = [*figures, *measure(answers, figures, names, known, seed), *texts.restarts(files)]
    below = baselines.files(params.baselines, run.input.get("baselines", []))
    measured += numbers.baseline_numbers(answers, below, seed)
    for row, path in zip(params.swept, swept_files, strict=True):
        points = schema.read(path, schema.SWEEPS)
        of_method = {"low_data": numbers.low_data, "grid": numbers.grid}[row["method"]]
        measured += of_method(row["benchmark"], row["model"], points)
    rows = [*params.rows, *params.swept]
    measured += marks.estimates(rows, [*params.outcomes, *swept_files])
    frame, provenance = results.frame("autoprompt", measured), run.provenance()
    schema.write(frame, schema.RESULTS, run.output.results, provenance)
    rows_of = judged.frame("autoprompt", ((one.probe, numbers.judge(one)) for one in answers))
    schema.write(rows_of, schema.JUDGED, run.output.judged, provenance)

    shown = page_of.select_reported(frame)
    every = [*chain(*own_views.of(shown)), own_views.FIGURE2, own_views.FIGURE3]
    views.write_all([view for view in every if view.select(shown).height], shown, run.output.tables)
    about = {n: json.loads((p / "task.json").read_text("utf-8")) for n, p in places.items()}
    # manual prompts for masked models, or for the first kind available
    manual = {
        name: {
            relation: by_kind.get("masked") or next(iter(by_kind.values()))
            for relation, by_kind in task["prompts"].get("manual", {}).items()
        }
        for name, task in about.items()
    }
    records = {
        PROMPTS: texts.of_tasks(files, answers, seed),
        RELATIONS: texts.of_relations(files, frame, manual),
        CONTEXTS: texts.contexts(answers, files, seed=seed),
    }
    notes = [f"{name}: {note}." for name, task in about.items() for note in task.get("notes", [])]
    funnels = {n: schema.read(p / "funnel.parquet", schema.FUNNEL) for n, p in places.items()}
    selection = params.settings["selection"]
    page = page_of.section(frame, models, records, mode, selection, notes, funnels)
    section.write(page, run.output.section)
