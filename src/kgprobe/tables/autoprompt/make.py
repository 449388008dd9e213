"""AutoPrompt's RESULTS, tables and section, from the files of a run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.tables import baselines, judged, results, views
from kgprobe.tables.answers import Row, folders
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
    """Every number of what was answered, with the printed one (of `figures`) beside it where there
    is one; `names`: model -> its printed name; `trained_on`: frame TRAINED_ON."""
    printed = published.by_key(figures)
    for benchmark in dict.fromkeys(one.benchmark for one in answers):
        those = [one for one in answers if one.benchmark == benchmark]
        size = max(one.size for one in those)
        for number in numbers.of_benchmark(those, seed):
            yield published.beside(number, printed, "", size)
        for one in those:
            if one.of_classes:
                ours = numbers.classes(one, seed)
            elif one.benchmark in EXTRACTION:
                ours = numbers.extraction(one, seed)
            else:
                ours = numbers.facts(one, trained_on, seed)
            name = names.get(one.probe.model, one.probe.model)
            # a figure of other facts, of one relation too, is no reference
            known = {} if one.is_sampled else printed
            yield from (published.beside(number, known, name, one.size) for number in ours)
        yield from numbers.differences(those, seed)
    yield from numbers.memory(answers, seed)


def make(
    table: Path,
    judged_path: Path,
    folder: Path,
    page: Path,
    rows: Sequence[Row],
    models: Mapping[str, Row],
    outcomes: Sequence[str],
    tasks: Sequence[str],
    prompts: Sequence[str],
    swept: Sequence[Row],
    swept_files: Sequence[str],
    printed: str,
    trained_on: str,
    mode: str,
    selection: str,
    given: Sequence[Mapping[str, Any]],
    provenance: Mapping[str, object],
    seed: int = 0,
    below: baselines.Files = MappingProxyType({}),
) -> None:
    """Write RESULTS at `table`, JUDGED at `judged_path`, views of RESULTS as TSV into `folder`, and
    the section at `page`.

    `rows` and `swept`: rows of experiments with the file of each in `outcomes` and `swept_files`;
    `tasks`: examples.parquet of every benchmark; `prompts`, `printed`: folders of prompt files and
    of printed figures; `given`: the section of the config of every row.
    """
    places = folders(tasks)
    answers = numbers.answered(rows, models, outcomes, places, mode, given, seed)
    figures, files = published.read(printed), texts.read(prompts)
    names = {model: row.get("published", "") or model for model, row in models.items()}
    known = schema.read(trained_on, schema.TRAINED_ON) if trained_on else None
    measured = [*figures, *measure(answers, figures, names, known, seed), *texts.restarts(files)]
    measured += numbers.baseline_numbers(answers, below, seed)
    for row, path in zip(swept, swept_files, strict=True):
        points = schema.read(path, schema.SWEEPS)
        of_method = {"low_data": numbers.low_data, "grid": numbers.grid}[row["method"]]
        measured += of_method(row["benchmark"], row["model"], points)
    measured += marks.estimates([*rows, *swept], [*outcomes, *swept_files])
    frame = results.frame("autoprompt", measured)
    schema.write(frame, schema.RESULTS, table, dict(provenance))
    rows_of = judged.frame("autoprompt", ((one.probe, numbers.judge(one)) for one in answers))
    schema.write(rows_of, schema.JUDGED, judged_path, dict(provenance))

    shown = page_of.select_reported(frame)
    every = [*chain(*own_views.of(shown)), own_views.FIGURE2, own_views.FIGURE3]
    views.write_all([view for view in every if view.select(shown).height], shown, folder)
    about = {n: json.loads((p / "task.json").read_text("utf-8")) for n, p in places.items()}
    # manual prompts for masked models, or for the first kind of all
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
    section.write(page_of.section(frame, models, records, mode, selection, notes, funnels), page)
