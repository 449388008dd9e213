"""What was measured before: RESULTS of named runs that travel with the project.

    python -m kgprobe.tables.report.measured results/NAME [COMMAND ...]

writes the principal numbers of a finished run to resources/measured/NAME.tsv:

    # commit: 3039c5b022
    # questions of bear_released: 5be1c6...
    paper   benchmark   group   model ...

The header says when, from which commit, on what processor and by which command they were measured.
Numbers of a benchmark whose fingerprint has changed since are shown as outdated.
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

#: stands for null in such a file, where "" is a value
NULL = "null"
#: begins the lines with the fingerprint of a benchmark's questions
ASKED = "questions of "
#: files of a benchmark, as far as it has them, that say what is asked
FILES = ("items", "reasoning", "candidates", "prompts", "examples")
#: signs that stand at names of models are read from these rows
SIGNS = (marks.COMPLETE, "valid")


class MeasuredError(ValueError):
    """A file of measured numbers is missing or is none; the message names it."""


@dataclass(frozen=True)
class Extract:
    """Numbers of a run, and the lines above them."""

    header: Mapping[str, str]
    results: pl.DataFrame


def fingerprint(folder: Path) -> str:
    """A hash of 64 bits of a benchmark's questions, options and templates in whatever order,
    without what is known about them besides (`meta`)."""
    digest = hashlib.blake2b(digest_size=8)
    for name in FILES:
        if (path := folder / f"{name}.parquet").is_file():
            frame = pl.read_parquet(path)
            if name in ("items", "reasoning"):
                # an empty column that ITEMS once had: hashes stay those of the files in resources
                frame = frame.with_columns(context=pl.lit(""))
            if "role" in frame.columns:  # what `two_hop` was called when these were made
                frame = frame.with_columns(pl.col("role").replace("two_hop", "two_up"))
            columns = sorted(set(frame.columns) - {"meta"})
            rows = sorted(map(repr, frame.select(columns).iter_rows()))
            for text in (name, *columns, *rows):
                digest.update(f"{text}\n".encode())
    return digest.hexdigest()


def read(path: Path) -> Extract:
    """A file of measured numbers. Raises MeasuredError where it is missing or has other columns."""
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
        null_values=NULL, empty_string_is_null=False,
    )  # fmt: skip
    frame = frame.with_columns(pl.lit("").alias(name) for name in unused).select(*types)
    return Extract(dict(line[2:].split(": ", 1) for line in above), frame)


def write(path: Path, rows: pl.DataFrame, header: Mapping[str, str]) -> None:
    """A file of measured numbers: who made it, when and how, then its rows, sorted, without the
    columns of SETTING that none of them has."""
    rows = rows.drop([name for name in SETTING if (rows[name] == "").all()])
    with schema.atomic(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.writelines(f"# {key}: {value}\n" for key, value in header.items())
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(rows.columns)
        table.writerows([NULL if v is None else v for v in r] for r in rows.sort(pl.all()).rows())


def keep(folder: Path, command: str) -> Path:
    """resources/measured/NAME.tsv of results/NAME; `command` is what made the run."""
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
    """The numbers of a run that are worth keeping: those of the headline, BEAR's accuracies by
    relation, the signs of models, and what control models say of trained-on and held-out facts."""
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
    """The headline's tables of this run's benchmarks with the models that were measured before.

    `folders`: the benchmarks of the run; `paths`: files of measured numbers, of which the first
    that has a model's number of the same questions stands for it, else the first that has one. A
    model of the run itself is not doubled, nor are control models shown, which every run makes
    anew. Without any number the section has no tables.
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
    """(benchmark, model) that is shown -> the model's name with when it was measured; those whose
    questions are the run's, or those whose are others."""
    names = {}
    state = "measured" if is_same else "outdated, other questions:"
    asked = extract.results.select("benchmark", "model").unique().sort(pl.all())
    for benchmark, model in asked.rows():
        is_left_out = model in headline.BASELINES or model.startswith(headline.CONTROL)
        if benchmark not in hashes or is_left_out or (benchmark, model) in known:
            continue
        if is_same == (extract.header.get(f"{ASKED}{benchmark}", "") == hashes[benchmark]):
            names[benchmark, model] = f"{model} ({state} {extract.header.get('date', '')})"
    return names


def _rename(extract: Extract, names: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """The rows of these benchmarks and models under their new names, signs of models included."""
    parts = []
    for (benchmark, model), name in names.items():
        kept = extract.results.filter(model=model)
        signs = kept.filter(pl.col("metric").is_in(SIGNS), benchmark="")
        rows = (kept.filter(benchmark=benchmark), signs)
        parts += [frame.with_columns(model=pl.lit(name)) for frame in rows]
    return pl.concat(parts).unique(maintain_order=True)


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), " ".join(sys.argv[2:])))
