"""`kgprobe switches`: what each point on which paper and code differ moves, on a run's answers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgprobe.cli import names, screen
from kgprobe.cli.asking import Json
from kgprobe.cli.comparing import Run, run_folder
from kgprobe.cli.tracing import own_path

if TYPE_CHECKING:
    from kgprobe.tables.answers import Probe
    from kgprobe.tables.attributes.study import Study
    from kgprobe.tables.ontoprobe.turned import StoredAnswers

EXPECTED = "resources/switches.tsv"
#: where the released split of the multiple choice lies below KGPROBE_DATA
SHIPPED = "ontoprobe/gpt/reasoning"
#: what the screen shows of a change
SHOWN = ("switch", "here", "other", "model", "prompt", "method", "benchmark", "group", "way",
         "metric", "value", "change", "95 %", "n", "expected", "verdict")  # fmt: skip
#: what follows a model's name in files beside its answers
BESIDE = (".top", ".curves", ".premise", ".forms", ".golds")
Row = dict[str, Any]


def switches(
    run: Run,
    paper: Annotated[
        str,
        typer.Option(
            help="ontoprobe, attributes or autoprompt.",
            autocompletion=names.among("ontoprobe", "attributes", "autoprompt"),
        ),
    ] = "ontoprobe",
    as_json: Json = False,
) -> None:
    """Turn each switch of a finished run alone.

    On stored answers, all else as the run had it: the change of MRR (OntoProbe) or of the metric at
    1 (attributes), in points, paired over the same questions, with its interval, beside the
    direction that was written down beforehand. A miss is reported, no error. What needs other
    answers is listed with the key of the config that makes them. With --json also task by task.

    Example: kgprobe switches embedded --paper attributes
    """
    with screen.report_errors(as_json):
        from kgprobe import sheets

        chosen = screen.choose(paper, list(PAPERS), "--paper")
        folder = run_folder(run)
        table = folder / "tables" / f"{chosen}.parquet"
        if not table.is_file():
            known = [name for name in PAPERS if (folder / f"tables/{name}.parquet").is_file()]
            right = " or ".join(f"--paper {name}" for name in known) or "a run of these papers"
            raise ValueError(f"{folder} has no numbers of {chosen} (no tables/{chosen}.parquet); "
                             f"right would be {right}")  # fmt: skip
        rows = sheets.read_table(sheets.located(EXPECTED))
        results = PAPERS[chosen](folder, table, rows)
        if as_json:
            screen.data(results)
            return
        _say(chosen, results)


def _say(paper: str, results: Mapping[str, list[Row]]) -> None:
    """Whole benchmarks, then what a switch lacks or needs; no column that is empty throughout."""
    whole = [row for row in results["turned"] if row.get("whole")]
    for row in whole:
        bounds = row["low"] is not None
        row["95 %"] = f"{row['low']:.3g} to {row['high']:.3g}" if bounds else "-"
    shown = [name for name in SHOWN if any(row.get(name, "") != "" for row in whole)]
    if whole:
        screen.table([{name: row.get(name, "") for name in shown} for row in whole])
    else:
        screen.say(f"no switch of {paper} can be turned on the answers of this run")
    counts = [row["verdict"] for row in whole]
    summary = ", ".join(f"{name} {counts.count(name)}" for name in dict.fromkeys(counts))
    screen.say(f"changes: {len(whole)}" + f" ({summary})" * bool(summary))
    for row in results["lacking"]:
        screen.say(f"{row['switch']}: nothing to turn it on; this run has not {row['lacks']}")
    screen.say(f"need a run of their own: {len(results['needing'])}")
    if results["needing"]:
        screen.table(_merge_rows(results["needing"]))


def _merge_rows(rows: list[Row]) -> list[Row]:
    """Rows that differ in their value (`to`) alone as one, with all values."""
    by_key: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(value for name, value in row.items() if name != "to")
        merged = by_key.setdefault(key, {**row, "to": ""})
        merged["to"] += (", " if merged["to"] else "") + row["to"]
    return list(by_key.values())


def _ontoprobe(folder: Path, table: Path, expected: list[dict[str, str]]) -> dict[str, list[Row]]:
    from kgprobe.benchmarks.ontoprobe.modes import Switches
    from kgprobe.settings import typed
    from kgprobe.tables import switches as turning
    from kgprobe.tables.answers import recorded
    from kgprobe.tables.ontoprobe import turned

    used_switches = typed(Switches, recorded(table, "switches"))
    answers = _ontoprobe_answers(folder, table)
    rows = turning.measured(list(turned.turns(answers, used_switches)), expected)
    for row in rows:
        # all tasks; of reasoning, choices and figures every setting is one
        row["whole"] = row.get("group") == "" or " " in row.get("group", "")
    needing = [
        {"set": f"ontoprobe.switches.{key}", "here": here, "to": other, "changes": stage,
         "expected": turning.expected(expected, turned.PAPER, key, here, other)[0]}
        for key, stage, here, others in turned.needing(used_switches) for other in others
    ]  # fmt: skip
    lacking = [{"switch": key, "lacks": what} for key, what in turned.find_missing(answers)]
    return {"turned": rows, "lacking": lacking, "needing": needing}


def _ontoprobe_answers(folder: Path, table: Path) -> "StoredAnswers":
    """The answers that OntoProbe's numbers of a run were made from.

    Raises ValueError where one of them is gone.
    """
    import polars as pl

    from kgprobe import schema
    from kgprobe.tables.answers import folders
    from kgprobe.tables.ontoprobe import choices, make, turned

    files = _files(folder, table)
    places = folders([path for path in files if path.name == "items.parquet"])
    memory, reasoned, picked = {}, {}, {}
    for path in files:
        method = _method(path, folder)
        if method in ("cloze", "soft") or method.startswith("sentence"):
            memory[_probe(path, folder)] = path
        elif method == "reason":
            probe = _probe(path, folder)
            cases = folder / "benchmarks" / probe.benchmark / "reasoning.parquet"
            tests = pl.read_parquet(path.with_name(f"{path.stem}.premise.parquet"))
            frames = schema.read(cases, schema.ITEMS), pl.read_parquet(path), tests
            reasoned[probe] = frames
        elif method == "choice":
            probe = _probe(path, folder)
            questions = folder / "benchmarks" / probe.benchmark / "choices.parquet"
            picked[probe] = schema.read(questions, schema.CHOICES), schema.read(path, schema.CHOSEN)
    shipped = _data() / SHIPPED
    split = choices.shipped(shipped) if picked and shipped.is_dir() else None
    return turned.StoredAnswers(make.memory(memory, places), reasoned, picked, split)


def _files(folder: Path, table: Path) -> list[Path]:
    """The files of a run that a table of it was made from, wherever the run's folder lies now.

    Raises ValueError for one that is gone.
    """
    from kgprobe import schema

    inputs = schema.provenance(table).get("inputs")
    files = []
    for name in inputs if isinstance(inputs, Mapping) else {}:
        if folder.name in Path(name).parts[:2]:
            path = own_path(folder, name)
            if not path.is_file():
                raise ValueError(f"{path}: gone, and {table} was made from it; right would be to "
                                 "run the workflow again, which makes it")  # fmt: skip
            files.append(path)
    return files


def _method(path: Path, folder: Path) -> str:
    """The method of a file of answers, by its place below the run (results/README.md); "" for other
    files, for what stands beside answers, and for forms of asking."""
    from kgprobe.templates import FORMS

    kind, *parts = path.relative_to(folder).parts
    if len(parts) < 3 or parts[1] in FORMS or Path(path.stem).suffix in BESIDE:
        return ""
    ranked = {"templates": "cloze"}.get(parts[1], parts[1])
    placed = {"ranks": ranked, "fills": "fill", "choices": "choice", "scores": parts[2]}
    return placed.get(kind, "")


def _probe(path: Path, folder: Path) -> "Probe":
    """Who answered in a file of answers."""
    from kgprobe.tables.answers import Probe, recorded

    benchmark, prompt = path.relative_to(folder).parts[1:3]
    record = recorded(path, "model")
    return Probe(benchmark, prompt, _method(path, folder), path.stem, str(record.get("kind", "")))


def _data() -> Path:
    import os

    return Path(os.environ.get("KGPROBE_DATA", ""))


def _attributes(folder: Path, table: Path, expected: list[dict[str, str]]) -> dict[str, list[Row]]:
    from kgprobe.tables import switches as turning
    from kgprobe.tables.answers import recorded
    from kgprobe.tables.attributes import turned

    study = _study(folder, table)
    seed = study.seed
    rows = turning.measured(list(turned.turns(study)), expected, seed)
    means = {_without_benchmark(row) for row in rows if row["benchmark"] == ""}
    for row in rows:
        # of a probe of one benchmark, and of a switch of one, there is no mean
        row["whole"] = row["benchmark"] == "" or _without_benchmark(row) not in means
    built = {
        name: recorded(folder / "benchmarks" / name / "examples.parquet", "settings")
        for name in study.benchmarks
    }
    needing = [
        {"set": key, "here": here, "to": other,
         "expected": turning.expected(expected, turned.PAPER, key, here, other)[0]}
        for key, here, others in turned.needing(built) for other in others
    ]  # fmt: skip
    lacking = [{"switch": key, "lacks": what} for key, what in turned.find_missing(study)]
    return {"turned": rows, "lacking": lacking, "needing": needing}


def _without_benchmark(row: Row) -> tuple[str, ...]:
    return tuple(row[key] for key in ("switch", "other", "model", "prompt", "method"))


def _study(folder: Path, table: Path) -> "Study":
    """The study of a run, without baselines. Raises ValueError where a file is gone."""
    from kgprobe import schema
    from kgprobe.tables.answers import folders, read_aliases, recorded
    from kgprobe.tables.attributes import published
    from kgprobe.tables.attributes import study as studies

    files = _files(folder, table)
    places = folders([path for path in files if path.name == "examples.parquet"])
    benchmarks = {n: studies.read_benchmark(places[n]) for n in published.NAMES if n in places}
    others = next((read_aliases(p) for p in files if p.name == "aliases.parquet"), None)
    answers = {}
    for path in files:
        method = _method(path, folder)
        if method == "fill" or method.startswith("sentence"):
            probe = _probe(path, folder)
            if probe.benchmark in benchmarks:
                benchmark = benchmarks[probe.benchmark]
                answers[probe] = studies.read_answers(probe, benchmark, path, others)
    seed = int(str(schema.provenance(table).get("seed", 0)))
    # runs from before they were recorded: the defaults
    options = recorded(table, "options")
    return studies.Study(benchmarks, answers, seed=seed, **options)


def _autoprompt(folder: Path, table: Path, expected: list[dict[str, str]]) -> dict[str, list[Row]]:
    from kgprobe.tables import switches as turning
    from kgprobe.tables.autoprompt import turned

    needing = [
        # a table does not record what its prompts were searched with
        {"set": key, "default": here, "to": other,
         "expected": turning.expected(expected, "autoprompt", name, here, other)[0]}
        for name, key, here, others in turned.needing() for other in others
    ]  # fmt: skip
    return {"turned": [], "lacking": [], "needing": needing}


#: paper -> what turns its switches: (folder of the run, RESULTS, what was expected)
PAPERS: dict[str, Callable[[Path, Path, list[dict[str, str]]], dict[str, list[Row]]]] = {
    "ontoprobe": _ontoprobe,
    "attributes": _attributes,
    "autoprompt": _autoprompt,
}

COMMANDS = (switches,)
