"""Stored measurements: RESULTS of named earlier runs that are distributed with the project.

    python -m kgprobe.tables.report.measured results/NAME [COMMAND ...]

writes the principal numbers of a finished run to resources/measured/NAME.tsv:

    # commit: 3039c5b022
    # questions of bear_released: 5be1c6...
    paper   benchmark   group   model ...

The header records the date, commit, processor and command of the measurement. Numbers of a
benchmark whose fingerprint differs are shown as those of other questions.
"""

import csv
import datetime
import hashlib
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.contracts import SETTING
from kgprobe.job import commit
from kgprobe.tables import results as house
from kgprobe.tables.report import grid, headline, marks, validity
from kgprobe.tables.report.section import Section

#: represents null in such a file, where "" is a value
NULL = "null"
#: prefix of the lines with the fingerprint of a benchmark's questions
ASKED = "questions of "
#: files that define a benchmark's questions, if present
FILES = ("items", "reasoning", "candidates", "prompts", "examples")
#: metrics of the rows that determine the marks on names of models
SIGNS = (marks.COMPLETE, "valid")


class MeasuredError(ValueError):
    """A file of measured numbers is missing or invalid; the message names it."""


@dataclass(frozen=True)
class Extract:
    """Numbers of a run, and the header lines above them."""

    header: Mapping[str, str]
    results: pl.DataFrame


def fingerprint(folder: Path) -> str:
    """Return a 64-bit hash of a benchmark's questions, options and templates in any order, without
    metadata (`meta`)."""
    digest = hashlib.blake2b(digest_size=8)
    for name in FILES:
        if (path := folder / f"{name}.parquet").is_file():
            frame = pl.read_parquet(path, glob=False)
            if name in ("items", "reasoning"):
                # an empty column that ITEMS used to have, so that hashes match files in resources
                frame = frame.with_columns(context=pl.lit(""))
            if "role" in frame.columns:  # the name of `two_hop` when these hashes were made
                frame = frame.with_columns(pl.col("role").replace("two_hop", "two_up"))
            columns = sorted(set(frame.columns) - {"meta"})
            rows = sorted(map(repr, frame.select(columns).iter_rows()))
            for text in (name, *columns, *rows):
                digest.update(f"{text}\n".encode())
    return digest.hexdigest()


def read(path: Path) -> Extract:
    """Read a file of measured numbers. Raises MeasuredError if missing or with other columns."""
    if not path.is_file():
        raise MeasuredError(f"no {path}: run make measured RUN={path.stem} after that run")
    lines = path.read_text(encoding="utf-8").splitlines()
    above = [line for line in lines if line.startswith("# ")]
    types, columns = schema.RESULTS.columns, lines[len(above)].split("\t")
    unused = [name for name in SETTING if name not in columns]
    if columns != [name for name in types if name not in unused]:
        raise MeasuredError(f"{path}: columns are not {', '.join(types)}; create it again")
    frame = pl.read_csv(
        path, separator="\t", skip_lines=len(above), schema={name: types[name] for name in columns},
        null_values=NULL, empty_string_is_null=False, glob=False,
    )  # fmt: skip
    frame = frame.with_columns(pl.lit("").alias(name) for name in unused).select(*types)
    return Extract(dict(line[2:].split(": ", 1) for line in above), frame)


def write(path: Path, rows: pl.DataFrame, header: Mapping[str, str]) -> None:
    """Write a file of measured numbers: the header, then the sorted rows, without columns of
    SETTING that are empty in all of them."""
    rows = rows.drop([name for name in SETTING if (rows[name] == "").all()])
    with schema.atomic(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.writelines(f"# {key}: {value}\n" for key, value in header.items())
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(rows.columns)
        table.writerows([NULL if v is None else v for v in r] for r in rows.sort(pl.all()).rows())


def keep(folder: Path, command: str) -> Path:
    """Write resources/measured/NAME.tsv from results/NAME; `command` is what made the run."""
    tables = [path for path in sorted((folder / "tables").glob("*.parquet"))
              if set(pl.read_parquet_schema(path)) == set(schema.RESULTS.columns)]  # fmt: skip
    results = house.read(tables)
    header = {"run": folder.name, "commit": commit(), "date": f"{datetime.date.today()}",
              "processor": f"{os.cpu_count()} cores", "command": command}  # fmt: skip
    for name in results["benchmark"].unique().sort():
        if name and (place := folder / "benchmarks" / name).is_dir():
            header[f"{ASKED}{name}"] = fingerprint(place)
    path = Path("resources/measured") / f"{folder.name}.tsv"
    write(path, principal(results), header)
    return path


def principal(results: pl.DataFrame) -> pl.DataFrame:
    """Select the numbers of a run to store: those of the headline, BEAR's accuracies by relation,
    rows for the marks of models, and control models' numbers on trained-on and held-out facts."""
    numbers, columns = headline.principal(results), results.columns
    keys = [view.select(numbers).select(columns) for view in headline.blocks(results)]
    by_relation = results.filter(
        pl.col("group") != "", house.plain(), paper="bear", metric="accuracy", slice=""
    )
    signs = results.filter(pl.col("metric").is_in(SIGNS))
    known = validity.probes(results)
    return pl.concat([*keys, by_relation, signs, known]).unique(maintain_order=True)


def section(
    results: pl.DataFrame, folders: Collection[Path], paths: Sequence[str | Path]
) -> Section:
    """Build the headline's tables of this run's benchmarks, including models measured earlier.

    `folders`: the benchmarks of the run; `paths`: files of measured numbers. A model's number is
    taken from the first file that has it for the same questions, else from the first that has it.
    Models of the run itself are not repeated; control models and baselines are not shown. Without
    any number the section has no tables.
    """
    hashes = {folder.name: fingerprint(folder) for folder in folders}
    extracts = [read(Path(path)) for path in paths]
    known = set(results.select("benchmark", "model").rows())
    parts, sources = [], []
    for is_same in (True, False):
        for extract in extracts:
            if names := _names(extract, hashes, known, is_same):
                parts.append(_rename(extract, names))
                sources.append({key: extract.header.get(key, "") for key in _SHOWN})
                known |= set(names)
    if not parts:
        return Section("measured", TITLE, LEAD)
    every = pl.concat([results, *parts])
    shown = {name for part in parts for name in part["benchmark"]}
    views = [v for v in headline.blocks(every) if shown & set(v.where["benchmark"])]
    numbers = headline.principal(every)
    grids = [grid.of_view(view, numbers, traced=False) for view in views]
    runs = grid.records("Runs that produced these numbers", sources)
    return Section("measured", TITLE, LEAD, grids=[*grids, runs])


TITLE = "Measured before"
LEAD = (
    "Stored numbers of other models next to those of this run, for the same questions unless "
    "stated otherwise. Their answers are not stored, so differences from them are not paired."
)
_SHOWN = ("run", "date", "commit", "processor", "command")


def _names(
    extract: Extract, hashes: Mapping[str, str], known: Collection[tuple[str, str]], is_same: bool
) -> dict[tuple[str, str], str]:
    """Return (benchmark, model) -> the model's name with the date of its measurement, for the
    models shown: with the run's questions if `is_same`, else those with other questions."""
    names = {}
    state = "measured" if is_same else "other questions, measured"
    asked = extract.results.select("benchmark", "model").unique().sort(pl.all())
    for row in asked.rows(named=True):
        benchmark, model = row.values()
        if benchmark not in hashes or not headline.is_external(row) or (benchmark, model) in known:
            continue
        if is_same == (extract.header.get(f"{ASKED}{benchmark}", "") == hashes[benchmark]):
            names[benchmark, model] = f"{model} ({state} {extract.header.get('date', '')})"
    return names


def _rename(extract: Extract, names: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """Return the rows of these benchmarks and models under new names, with rows for their marks."""
    parts = []
    for (benchmark, model), name in names.items():
        kept = extract.results.filter(model=model)
        signs = kept.filter(pl.col("metric").is_in(SIGNS), benchmark="")
        rows = (kept.filter(benchmark=benchmark), signs)
        parts += [frame.with_columns(model=pl.lit(name)) for frame in rows]
    return pl.concat(parts).unique(maintain_order=True)


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), " ".join(sys.argv[2:])))
