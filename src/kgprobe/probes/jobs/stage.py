"""All that one model is asked in one stage: loaded once, answers taken where they are kept.

    parts of the rule --units--> kept already? --no--> asked by the method's module --> kept
                                     |                                                   |
                                     +------------------> files of this run <------------+

A part is what one row of the sheet asks (or all rows that are answered together). The module
`methods/<method>.py` says of what units it consists and how they are answered:

    OUTPUT               the contract of every file that it makes; None for a folder of files
    units(part)          digest of a unit -> the template that it is, or None for the whole part
    answers(part, into)  (frames by the name of their file, record); folders are made below `into`
"""

import importlib
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import Run, log, versions
from kgprobe.probes.jobs.fill import answerer
from kgprobe.probes.jobs.kept import Group, Kept, content, digest, merged, rows
from kgprobe.probes.models import device
from kgprobe.probes.models.load import ModelSpec, outline
from kgprobe.settings import Api, typed

#: (relation, index) of a row of PROMPTS
Template = tuple[str, int]
Load = Callable[[ModelSpec], Any]
#: libraries that the last bits of an answer depend on
LIBRARIES = ("torch", "transformers", "tokenizers")


class Once:
    """Loads every model when it is first asked for; one that cannot be loaded is tried once."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self._found: dict[ModelSpec, Any] = {}

    def __call__(self, spec: ModelSpec) -> Any:
        if spec not in self._found:
            try:
                self._found[spec] = self.load(spec)
            except (RuntimeError, OSError, ValueError) as error:
                self._found[spec] = error
        if isinstance(found := self._found[spec], Exception):
            raise found
        return found


@dataclass(frozen=True)
class Part:
    """What is asked: by which method, with which files and settings, to be written where.

    `work` is the folder of unfinished parts. `only`: the templates that are asked, None for all;
    tables are read with their rows alone.
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
    threads: int = 1
    work: Path = Path()
    only: Collection[Template] | None = None

    def read(self, name: str, contract: schema.Contract) -> pl.DataFrame:
        """A table of the input."""
        frame = schema.read(self.input[name], contract)
        if self.only is None or "relation" not in frame.columns:
            return frame
        on = ["relation", "index"] if "index" in frame.columns else ["relation"]
        asked = pl.DataFrame(
            list(self.only), schema={"relation": pl.String, "index": pl.Int32}, orient="row"
        )
        return frame.join(asked, on=on, how="semi", maintain_order="left")

    def paths(self) -> list[str]:
        """Every file of the input."""
        lists = (v if isinstance(v, list) else [v] if v else [] for v in self.input.values())
        return [path for paths in lists for path in paths]


def whole(part: Part) -> dict[str, Template | None]:
    """The part as one unit."""
    return {digest([(Path(path).name, content(path)) for path in part.paths()]): None}


def by_template(part: Part) -> dict[str, Template | None]:
    """Every template with the items of its relation and their options."""
    return templates_of(part, part.read("questions", schema.ITEMS))


def templates_of(part: Part, items: pl.DataFrame) -> dict[str, Template | None]:
    """The same of some ITEMS.

    Relations without template count as one that nobody has answered: the method tells them.
    """
    items = items.sort("item")
    candidates = part.read("candidates", schema.CANDIDATES).sort("set", "index")
    prompts = part.read("prompts", schema.PROMPTS).sort("prompt")
    sets = {name: rows(own) for (name,), own in candidates.group_by("set")}
    asked = {
        relation: digest(rows(own), [sets.get(s) for s in own["candidates"].unique().sort()])
        for (relation,), own in items.group_by("relation")
    }
    lacking = set(asked) - set(prompts["relation"])
    found: dict[str, Template | None] = {
        digest(row, asked[row["relation"]]): (row["relation"], row["index"])
        for row in prompts.iter_rows(named=True)
        if row["relation"] in asked
    }
    return found | {digest("without template", name): (name, -1) for name in sorted(lacking)}


def ask(run: Run) -> None:
    """Answer every part of a rule, those that fail left out; then all that failed is told.

    The rule's `asked` are the parts as plain values, its `code` the hash of every method's code.
    """
    spec, api = ModelSpec(**run.params.model), typed(Api, run.config["api"])
    load = Once(partial(answerer, api=api))
    model = identity(spec, api)
    with run.parts() as parts:
        for told in run.params.asked:
            part = Part(**told, spec=spec, load=load, api=api, threads=run.threads)
            with parts.part(f"{part.method} of {part.benchmark}, prompt {part.prompt}"):
                context = [part.method, part.benchmark, part.prompt, dict(part.settings), model]
                code = run.params.code[part.method]
                answer(run, part, Kept(Path(run.params.kept), *context, code), code)


def identity(spec: ModelSpec, api: Api) -> dict[str, Any]:
    """What an answer depends on of its model, the machine and the libraries."""
    row = {name: value for name, value in asdict(spec).items() if name != "made"}
    if spec.kind == "api":
        return {**row, "url": os.environ.get(api.url_variable, "")}
    libraries = {name: version for name, version in versions().items() if name in LIBRARIES}
    told = {**row, **outline(spec).record, "versions": libraries}
    if spec.backend:
        return {**told, "url": os.environ.get(api.url_variable, "")}
    return {**told, "device": device.ready().type}


def answer(run: Run, part: Part, kept: Kept, code: str) -> None:
    """Write the files of a part, asking what is not kept."""
    method = importlib.import_module(f"{__package__}.methods.{part.method}")
    units: dict[str, Template | None] = method.units(part)
    groups, missing = kept.find(units)
    log.info("%d of %d units are kept", len(units) - len(missing), len(units))
    if missing:
        some = {template for unit in missing if (template := units[unit])}
        is_all = len(missing) == len(units)
        made = kept.new()
        try:
            asked = replace(part, work=kept.work, only=None if is_all else some)
            frames, record = method.answers(asked, made)
            if "api" in record:  # what was spent differs from run to run
                run.note(api=record.pop("api"))
            for name, frame in frames.items():
                frame.write_parquet(made / f"{name}.parquet")
            groups.append(kept.keep(missing, made, record))
        finally:
            shutil.rmtree(made, ignore_errors=True)
    record = merged(group.record for group in groups)
    if None in method.OUTPUT.values():  # a folder has no metadata
        run.note(**{f"{part.benchmark}, prompt {part.prompt}": record})
    told = run.provenance(
        [*part.paths(), *run.input.get("weights", [])],
        wildcards={"benchmark": part.benchmark, "prompt": part.prompt, "model": part.spec.model},
        method=part.method,
        code=code,
        model=record,
    )
    for name, contract in method.OUTPUT.items():
        if contract is None:
            shutil.copytree(groups[0].folder / name, part.output[name], dirs_exist_ok=True)
            continue
        pieces = [_taken(group, name, part, units) for group in groups]
        schema.write(pl.concat(pieces), contract, part.output[name], told)


def _taken(
    group: Group, name: str, part: Part, units: Mapping[str, Template | None]
) -> pl.DataFrame:
    """The rows of a kept table that belong to the units that are taken."""
    frame = pl.read_parquet(group.folder / f"{name}.parquet")
    if group.is_whole:
        return frame
    templates = [template for unit in group.units if (template := units[unit])]
    asked = pl.DataFrame(
        templates, schema={"relation": pl.String, "template": pl.Int32}, orient="row"
    )
    if "relation" in frame.columns:
        return frame.join(asked, on=["relation", "template"], how="semi")
    items = schema.read(part.input["questions"], schema.ITEMS).select("item", "relation")
    return frame.join(items.join(asked, on="relation"), on=["item", "template"], how="semi")
