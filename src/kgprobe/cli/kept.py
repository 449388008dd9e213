"""Write the folder of a probe, laid out like a workflow run: questions, SCORES, RESULTS, report.

results/NAME/benchmarks/BENCHMARK/   the questions as asked
results/NAME/shards/                 scores so far, in shards: an interrupted probe resumes here
results/NAME/scores/BENCHMARK/PROMPT/METHOD/MODEL.parquet
results/NAME/judged/bear.parquet     every answer and whether it is correct
results/NAME/tables/bear.parquet     every result
results/NAME/report/index.html       the report, with pages/ next to it
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import experiments, schema
from kgprobe.job import sha256, versions
from kgprobe.library import RELATIONS, Results
from kgprobe.questions import GOLDS_FILE, TABLES, Benchmark
from kgprobe.questions import RELATIONS as CARDINALITIES
from kgprobe.tables.answers import questions, recorded
from kgprobe.tables.bear import section
from kgprobe.tables.bear.figures import figures
from kgprobe.tables.report import about
from kgprobe.tables.report.pages import Report, write_report
from kgprobe.tables.report.section import Section


def check(
    folder: Path, record: Mapping[str, Any], asked: Benchmark, prompt: str, method: str
) -> None:
    """Raise ValueError if a run's folder has answers that these would replace: of other weights or
    another BOS policy, to other questions or prompts, or by another method."""
    ours = [
        schema.cast_columns(getattr(asked, name), contract).sort(contract.key)
        for name, contract in TABLES.items()
    ]
    for path in sorted(folder.glob("scores/*/*/*/*.parquet")):
        _, benchmark, named, by, _ = path.relative_to(folder).parts
        stored, made = questions(folder / "benchmarks" / benchmark), recorded(path, "model")
        bos = made.get("bos", "-")  # recorded for causal models
        is_same = (benchmark, named, by, bos) == (
            asked.name,
            prompt,
            method,
            record["bos"],
        ) and all(made.get(name) == record[name] for name in ("weights", "tokenizer", "dtype"))
        if not is_same or not all(map(pl.DataFrame.equals, stored, ours)):
            raise ValueError(
                f"{folder} has answers of {made.get('source')} to {stored[0].height} questions of "
                f"{benchmark} (--prompt {named}, --method {by}, BOS policy {bos}), "
                "which would be lost; choose another --name"
            )


def write(result: Results, folder: Path, command: str) -> Path:
    """Write the results of a probe and return the path of its report, which shows the command. The
    same answers give the same bytes."""
    benchmark, who = result.benchmark, result.probe
    place = folder / "benchmarks" / benchmark.name
    benchmark.write(place)
    scores = folder / "scores" / benchmark.name / who.prompt / who.method / f"{who.model}.parquet"
    hashes = _hashes(folder, [place / f"{name}.parquet" for name in TABLES])
    made_with = {"versions": versions(), "model": dict(result.record)}
    schema.write(result.scores, schema.SCORES, scores, {"inputs": hashes, **made_with})
    whole = (place / name for name in (CARDINALITIES, GOLDS_FILE))
    hashes |= _hashes(folder, [scores, *(path for path in whole if path.is_file())])
    numbers = folder / "tables" / "bear.parquet"
    made_of = {"inputs": hashes, "seed": 0, **made_with}
    schema.write(result.frame, schema.RESULTS, numbers, made_of)
    judged = result.judged
    schema.write(judged, schema.JUDGED, folder / "judged" / "bear.parquet", made_of)
    files = [*hashes, "judged/bear.parquet", "tables/bear.parquet"]
    return write_report(folder / "report", _report(result, folder, judged, files, command))


def _hashes(folder: Path, files: list[Path]) -> dict[str, str]:
    """Return the sha256 of files by their path relative to the run's folder."""
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files}


def _report(
    result: Results, folder: Path, judged: pl.DataFrame, files: list[str], command: str
) -> Report:
    who, benchmark = result.probe, result.benchmark
    row = {"model": who.model, "kind": who.kind, "source": who.source, "dtype": who.dtype,
           "bos": who.bos, "note": ""}  # fmt: skip
    probed = {who.model: row}
    rows = experiments.read_table(experiments.located(RELATIONS))
    titles = {line["relation"]: line["note"] for line in rows}
    names = {name: titles.get(name, name) for name in benchmark.items["relation"].unique().sort()}
    drawings = list(figures(result.frame, probed, names))
    parts = section.arranged(result.frame, probed, names, {}, drawings)
    title = "BEAR: balanced multiple choice"
    spec = {"paper": "bear", **who.dimensions}
    places = {benchmark.name: folder / "benchmarks" / benchmark.name}
    return Report(
        run=folder.name,
        results=result.frame,
        probed=probed,
        config={"items": benchmark.items.height, "prompt": who.prompt, "method": who.method},
        models=[{**row, "parameters": who.parameters or ""}],
        experiments=[spec],
        versions=versions(),
        sections=[Section("bear", title, section.LEAD, parts=parts, terms=section.TERMS)],
        benchmarks=list(about.benchmarks(result.frame, probed, [spec], judged, places, names, {})),
        links=dict.fromkeys(files, ""),
        commands={"": command},
        title=f"What {who.model} knows about {benchmark.name}",
    )
