"""AutoPrompt's tables and chapter, from the files of a run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.tables import (
    autoprompt,
    autoprompt_extraction,
    autoprompt_gather,
    autoprompt_prompts,
    autoprompt_published,
    autoprompt_report,
    calibration,
    chapter,
    marks,
)
from kgprobe.tables.autoprompt_gather import Row
from kgprobe.tables.autoprompt_sweeps import Sweep, grid, low_data
from kgprobe.tables.table import write_tsv

#: titles of the tables of texts
PROMPTS = "Table 3: found prompts, filled with an example"
RELATIONS = "Table 7: prompts by relation"
CONTEXTS = "Table 8: relation extraction, examples (+: right)"


def make(
    folder: Path,
    page: Path,
    rows: Sequence[Row],
    models: Mapping[str, Row],
    outcomes: Sequence[str],
    tasks: Sequence[str],
    prompts: Sequence[str],
    swept: Sequence[Row],
    sweeps: Sequence[str],
    published: str,
    taught: str,
    settings: Mapping[str, Any],
    provenance: Mapping[str, object],
    seed: int = 0,
) -> None:
    """Write every TABLE of the paper as parquet and TSV into `folder`, and the chapter at `page`.

    `rows` and `swept`: rows of the sheet with the file of each in `outcomes` and `sweeps`; `tasks`:
    examples.parquet of every benchmark; `prompts`: folders of prompt files; `published`: the folder
    of printed figures; `taught`: the TAUGHT file, or ""; `settings`: mode, selection (of prompts
    from few examples), and given, the section of the config of every row.
    """
    folders = {Path(path).parent.name: Path(path).parent for path in tasks}
    mode, given = settings["mode"], settings["given"]
    found = autoprompt_gather.answered(rows, models, outcomes, folders, mode, given, seed)
    printed = autoprompt_published.read(published)
    known = schema.read(taught, schema.TAUGHT) if taught else None
    calibrated = None if known is None else autoprompt.calibration(found, known, seed)
    found = autoprompt.signed(found, calibrated)
    made: dict[str, pl.DataFrame | None] = dict(autoprompt.tables(found, printed, seed, known))
    made["autoprompt_table5"] = autoprompt_extraction.extraction(found, printed, seed)
    shown = marks.names([*rows, *swept], [*outcomes, *sweeps])
    files = autoprompt_prompts.read(prompts, shown)
    made["autoprompt_restarts"] = autoprompt_prompts.restarts(files, found)
    by_method = {
        method: [
            Sweep(row["benchmark"], shown[row["model"]], schema.read(path, schema.SWEEPS))
            for row, path in zip(swept, sweeps, strict=True)
            if row["method"] == method
        ]
        for method in ("low_data", "grid")
    }
    made["autoprompt_figure2"] = low_data(by_method["low_data"])
    made["autoprompt_figure3"] = grid(by_method["grid"])
    if calibrated is not None:
        outside = calibration.outside(calibrated)
        made["autoprompt_calibration"] = calibration.marked(calibrated, outside)
    kept = {name: frame for name, frame in made.items() if frame is not None}
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in kept.items():
        schema.write(frame, schema.TABLE, folder / f"{name}.parquet", dict(provenance))
        write_tsv(frame, folder / f"{name}.tsv")
    texts = autoprompt_prompts.texts(files)
    about = {
        name: json.loads((place / "task.json").read_text(encoding="utf-8"))
        for name, place in folders.items()
    }
    records = {
        PROMPTS: autoprompt_prompts.of_tasks(files, found, seed),
        RELATIONS: autoprompt_prompts.of_relations(files, kept, _manual(about)),
        CONTEXTS: autoprompt_extraction.examples(found, texts, seed=seed),
    }
    told = [f"{name}: {note}." for name, task in about.items() for note in task.get("notes", [])]
    funnels = {
        name: schema.read(place / "funnel.parquet", schema.FUNNEL)
        for name, place in folders.items()
    }
    made_page = autoprompt_report.chapter(kept, found, printed, records, settings, told, funnels)
    chapter.write(made_page, page)


def _manual(about: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """benchmark -> relation -> its manual prompt for masked models, or for the first kind of all.

    `about`: task.json of every benchmark.
    """
    return {
        name: {
            relation: texts.get("masked") or next(iter(texts.values()))
            for relation, texts in task["prompts"].get("manual", {}).items()
        }
        for name, task in about.items()
    }
