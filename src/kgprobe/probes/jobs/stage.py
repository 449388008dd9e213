"""Answers of one model in one stage: the model is loaded once, stored answers are reused.

    parts of the rule --units--> stored? --no--> answered by the method's module --> stored
                                    |                                                  |
                                    +-----------------> files of this run <------------+

A part is the input of one experiment (or of several that are answered together). The module
`methods/<method>.py` defines its units and how they are answered:

    OUTPUT               the contract of every output file; None for a folder of files
    units(part)          digest of a unit -> its template, or None; omitted if it is `whole`
    answers(part)        (frames by file name, record); folders are created in `part.kept.fresh`
    share(part, (k, n))  optional: computes the k-th of n shards of what `answers` then reuses

The method `baseline` runs another method without the tested knowledge: a part `baseline-cloze` is
answered by both modules, and has the output files of the second.

A job with several threads first runs as many processes, with one thread each, so that the last bits
do not depend on the number of threads; then it collects their stored answers like any others.
"""

import importlib
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import JobContext, PartOutcomes, log, progress, versions
from kgprobe.probes.api.client import open_client
from kgprobe.probes.jobs import workers
from kgprobe.probes.jobs.kept import (
    Group,
    Kept,
    content,
    describe_damage,
    digest,
    merge_records,
    rows,
)
from kgprobe.probes.models import device
from kgprobe.probes.models.load import LIBRARIES, ModelSpec, load_model, outline
from kgprobe.settings.probes import Api
from kgprobe.settings.types import typed

#: (relation, index) of a row of PROMPTS
Template = tuple[str, int]
Load = Callable[[ModelSpec], Any]
#: tables by file name, and the record of how they were made
Answers = tuple[dict[str, pl.DataFrame], dict[str, Any]]
#: methods whose parts take long and are not divided
LONG = ("grid", "low_data", "predict", "reason", "choice")


def once(load: Load) -> Load:
    """Load every model on first use; a model that cannot be loaded is tried only once."""
    outcomes: dict[ModelSpec, Any] = {}

    def load_once(spec: ModelSpec) -> Any:
        if spec not in outcomes:
            try:
                outcomes[spec] = load(spec)
            except (RuntimeError, OSError, ValueError) as error:
                outcomes[spec] = error
        if isinstance(model := outcomes[spec], Exception):
            raise model
        return model

    return load_once


@dataclass(frozen=True)
class Part:
    """A method with its input files, settings and output files.

    `kept` are the stored answers. `only`: the templates to use, None for all;
    tables are then restricted to their rows. `tables`: tables that replace input files.
    """

    method: str
    benchmark: str
    prompt: str
    input: Mapping[str, Any]
    output: Mapping[str, str]
    settings: Mapping[str, Any]
    spec: ModelSpec
    load: Load
    api: Api
    kept: Kept
    only: Collection[Template] | None = None
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in logs and errors."""
        return f"{self.method} of {self.benchmark}, prompt {self.prompt}"

    @property
    def module(self) -> Any:
        """The module of the method."""
        return _method(self.method.partition("-")[0])

    @property
    def answered_by(self) -> Any:
        """The module of its output files: for a baseline that of the method after `baseline-`."""
        return _method(self.method.rpartition("-")[2])

    @property
    def work(self) -> Path:
        """The folder of unfinished results."""
        return self.kept.work

    def read(self, name: str, contract: schema.Contract) -> pl.DataFrame:
        """Read an input table."""
        table = self.tables.get(name)
        frame = schema.read(self.input[name], contract) if table is None else table
        if self.only is None or "relation" not in frame.columns:
            return frame
        on = ["relation", "index"] if "index" in frame.columns else ["relation"]
        templates = pl.DataFrame(
            list(self.only), schema={"relation": pl.String, "index": pl.Int32}, orient="row"
        )
        return frame.join(templates, on=on, how="semi", maintain_order="left")

    def tables_asked(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Read ITEMS, CANDIDATES and PROMPTS of the input."""
        return (
            self.read("questions", schema.ITEMS),
            self.read("candidates", schema.CANDIDATES),
            self.read("prompts", schema.PROMPTS),
        )

    def paths(self) -> list[str]:
        """Return every input file."""
        lists = (v if isinstance(v, list) else [v] if v else [] for v in self.input.values())
        return [path for paths in lists for path in paths]


def _method(name: str) -> Any:
    return importlib.import_module(f"{__package__}.methods.{name}")


def whole(part: Part) -> dict[str, Template | None]:
    """Treat the part as one unit."""
    return {digest([(Path(path).name, content(path)) for path in part.paths()]): None}


def by_template(part: Part) -> dict[str, Template | None]:
    """Return every template with the items of its relation and their options, as units."""
    return templates_of(part, part.read("questions", schema.ITEMS))


def templates_of(part: Part, items: pl.DataFrame) -> dict[str, Template | None]:
    """Return as units every template with the given ITEMS of its relation, and their options.

    Relations without template count as one missing unit each: the method reports them.
    """
    items = items.sort("item")
    candidates = part.read("candidates", schema.CANDIDATES).sort("set", "index")
    prompts = part.read("prompts", schema.PROMPTS).sort("prompt")
    sets = {name: rows(group) for (name,), group in candidates.group_by("set")}
    digests = {
        relation: digest(rows(group), [sets.get(s) for s in group["candidates"].unique().sort()])
        for (relation,), group in items.group_by("relation")
    }
    lacking = set(digests) - set(prompts["relation"])
    units: dict[str, Template | None] = {
        digest(row, digests[row["relation"]]): (row["relation"], row["index"])
        for row in prompts.iter_rows(named=True)
        if row["relation"] in digests
    }
    return units | {digest("without template", name): (name, -1) for name in sorted(lacking)}


def ask(run: JobContext) -> None:
    """Answer every part of a rule except those that fail; then report all failures.

    The rule's `asked` are the parts as plain values, its `code` the hash of every method's code.
    """
    params, api = run.params, typed(Api, run.config["api"])
    spec = ModelSpec(**params.model)
    arguments = spec, params.asked, params.code, Path(params.kept), api, identity(spec, api)
    parts, failed = list_parts(*arguments), {}
    # for a server a single process sends the requests
    if run.threads > 1 and spec.kind != "api":
        failed = run_processes(parts, arguments, run.threads)
    with run.parts() as outcomes:
        for number, part in enumerate(parts):
            if number in failed:
                outcomes.fails(part.name, failed[number])
                continue
            with outcomes.part(part.name):
                answer(run, part, params.code[part.method])


def list_parts(
    spec: ModelSpec,
    entries: Sequence[Mapping[str, Any]],
    code: Mapping[str, str],
    kept: Path,
    api: Api,
    model: Mapping[str, Any],
) -> list[Part]:
    """Return the parts of a rule; `model` is the identity of the model that is loaded for all."""

    def answerer(spec: ModelSpec) -> Any:
        """Load the model of a row of models.tsv, or create a client of its server."""
        if spec.kind == "api":
            return open_client(spec, api)
        device.ready()
        return load_model(spec)

    load, parts = once(answerer), []
    for entry in entries:
        context = [entry["method"], entry["benchmark"], entry["prompt"], dict(entry["settings"])]
        store = Kept(kept, *context, model, code[entry["method"]])
        parts.append(Part(**entry, spec=spec, load=load, api=api, kept=store))
    return parts


def run_processes(parts: Sequence[Part], arguments: tuple[Any, ...], count: int) -> dict[int, str]:
    """Compute missing answers in `count` processes; return part number -> error of failures.

    Each process builds `parts` from `arguments`. With accelerators only divisible parts are
    computed here: one accelerator per process is for long work, and the rest fits one process. Long
    parts start first, so that none is left to a single last process.
    """
    lacking = [number for number, part in enumerate(parts) if _lacks(part)]
    shared = [number for number in lacking if hasattr(parts[number].module, "share")]
    others = [number for number in lacking if number not in shared]
    others.sort(key=lambda number: parts[number].method not in LONG)
    if device.choose_device().type != "cpu":
        others = []
    count = count if shared else min(count, len(others))
    if count < 2:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        total = len(shared) * count + len(others)
        with progress(total=total, desc=parts[0].spec.model, unit="part") as bar:
            workers.run(work, (arguments, shared, others, Path(folder)), count, bar.update)
        return {
            int(path.stem): path.read_text(encoding="utf-8")
            for path in Path(folder).glob("*.failed")
        }


def work(
    arguments: tuple[Any, ...],
    shared: Sequence[int],
    others: Sequence[int],
    folder: Path,
    of: tuple[int, int],
    progress: Callable[[int], object],
) -> None:
    """Run one of several processes: its shards of divided parts, then, in sequence, those other
    parts that no process has started. Files in `folder` mark started parts, and record errors."""
    device.ready()
    parts = list_parts(*arguments)
    for number in [*shared, *others]:
        if number in others:
            try:
                (folder / str(number)).touch(exist_ok=False)
            except FileExistsError:  # another process has started it
                continue
        part, outcomes = parts[number], PartOutcomes()
        with outcomes.part(part.name):
            if number in shared:
                part.module.share(missing_of(part)[-1], of)
            else:
                answer_units(part)
        for cause in outcomes.failed:
            (folder / f"{number}.failed").write_text(cause, encoding="utf-8")
        progress(1)


def _lacks(part: Part) -> bool:
    try:
        return bool(missing_of(part)[2])
    except (ValueError, OSError, pl.exceptions.PolarsError):
        return False  # errors are reported when the part is answered


def identity(spec: ModelSpec, api: Api) -> dict[str, Any]:
    """Return what an answer depends on in its model, the machine and the libraries."""
    row = {name: value for name, value in asdict(spec).items() if name != "models_folder"}
    if spec.kind == "api":
        return {**row, "url": os.environ.get(api.url_variable, "")}
    record = {**row, **outline(spec).record}
    # outline imports the last of them
    libraries = {name: version for name, version in versions().items() if name in LIBRARIES}
    return {**record, "versions": libraries, "device": device.ready().type}


def missing_of(part: Part) -> tuple[dict[str, Template | None], list[Group], set[str], Part]:
    """Return (units, stored groups, missing units, the part restricted to missing units)."""
    units = getattr(part.module, "units", whole)(part)
    groups, missing = part.kept.find(units)
    some = {template for unit in missing if (template := units[unit])}
    return units, groups, missing, replace(part, only=some if groups else None)


def answer_units(part: Part) -> tuple[dict[str, Template | None], list[Group], dict[str, Any]]:
    """Compute and store missing answers; return (units, groups that contain them, reported server
    costs)."""
    units, groups, missing, subset = missing_of(part)
    log.info("%d of %d units are kept", len(units) - len(missing), len(units))
    spent = {}
    if missing:
        folder = part.kept.new()
        try:
            frames, record = part.module.answers(subset)
            # differs from run to run
            spent = {name: record.pop(name) for name in ("api",) if name in record}
            for name, frame in frames.items():
                frame.write_parquet(folder / f"{name}.parquet")
            groups.append(part.kept.keep(missing, folder, record))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return units, groups, spent


def answer(run: JobContext, part: Part, code: str) -> None:
    """Write the output files of a part."""
    units, groups, spent = answer_units(part)
    run.note(**spent)
    record = merge_records(group.record for group in groups)
    if None in part.answered_by.OUTPUT.values():  # a folder has no metadata
        run.note(**{f"{part.benchmark}, prompt {part.prompt}": record})
    provenance = run.provenance(
        [*part.paths(), *run.input.get("weights", [])],
        wildcards={"benchmark": part.benchmark, "prompt": part.prompt, "model": part.spec.model},
        method=part.method,
        code=code,
        model=record,
    )
    for name, contract in part.answered_by.OUTPUT.items():
        if contract is None:
            shutil.copytree(groups[0].folder / name, part.output[name], dirs_exist_ok=True)
            continue
        pieces = [_read_units(group, name, part, units) for group in groups]
        # possibly none of a baseline's few questions can be used with this model
        is_baseline = part.module is not part.answered_by
        relaxed = replace(contract, may_be_empty=contract.may_be_empty or is_baseline)
        schema.write(pl.concat(pieces), relaxed, part.output[name], provenance)


def _read_units(
    group: Group, name: str, part: Part, units: Mapping[str, Template | None]
) -> pl.DataFrame:
    """Return the rows of a stored table that belong to the units in use."""
    path = group.folder / f"{name}.parquet"
    try:
        frame = pl.read_parquet(path, glob=False)
    except pl.exceptions.PolarsError as error:
        raise ValueError(describe_damage(path, error)) from error
    if group.is_whole:
        return frame
    templates = [template for unit in group.units if (template := units[unit])]
    subset = pl.DataFrame(
        templates, schema={"relation": pl.String, "template": pl.Int32}, orient="row"
    )
    if "relation" in frame.columns:
        return frame.join(subset, on=["relation", "template"], how="semi")
    items = schema.read(part.input["questions"], schema.ITEMS).select("item", "relation")
    return frame.join(items.join(subset, on="relation"), on=["item", "template"], how="semi")
