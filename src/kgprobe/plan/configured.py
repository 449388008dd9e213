"""What a run of some configurations costs before it begins, and what it took when it was measured.

Asks nothing outside this machine.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from huggingface_hub import try_to_load_from_cache
from snakemake.utils import update_config

from kgprobe import sheets
from kgprobe.config import read as read_config
from kgprobe.plan import costs, jobs, table
from kgprobe.settings import Settings
from kgprobe.tables.report import measured as extracts

#: one of them is in the cache where a model's weights are
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
BASE = "config/config.yaml"


def settings_of(configs: Sequence[str]) -> Settings:
    """The settings of the files, laid over config.yaml as Snakemake does it. Raises SheetError for
    a file that is not there or no configuration, ValueError for what stands in it."""
    own = (sheets.located(c) for c in configs if Path(c).name != Path(BASE).name)
    files = [sheets.located(BASE), *own]
    merged: dict[str, object] = {}
    for path in files:
        update_config(merged, _read(path))
    return read_config(merged, files)


def _read(path: str) -> dict[str, object]:
    """Keys and values of a YAML file. Raises SheetError."""
    if not Path(path).is_file():
        known = [str(own) for own in sorted(Path(sheets.located("config")).glob("**/*.yaml"))]
        named = [f"config/{own.partition('config/')[2]}" for own in known]
        raise sheets.SheetError(f"{path}: no such file{sheets.nearest(path, named)}")
    try:
        found = yaml.safe_load(sheets.read_text(path)) or {}
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise sheets.SheetError(f"{path}{line}: no YAML: {error.problem}") from error
    if not isinstance(found, dict):
        raise sheets.SheetError(f"{path}: a {type(found).__name__}; right would be keys with "
                                "values, as `run: {name: mine}`")  # fmt: skip
    return found


def models_of(settings: Settings) -> dict[str, dict[str, str]]:
    """Rows of the model sheet by name."""
    path = sheets.located(settings.sheets.models)
    schema = sheets.read_schema(sheets.located("workflow/schemas/models.schema.json"))
    return sheets.by_name(sheets.read_sheet(path, schema), path)


def is_cached(row: Mapping[str, str]) -> bool:
    """Whether the cache of the hub holds a model's weights at its revision."""
    name, revision = row["source"].removeprefix("hub:"), row["revision"]
    return any(
        isinstance(try_to_load_from_cache(name, file, revision=revision), str) for file in WEIGHTS
    )


def planned(configs: Sequence[str]) -> table.Plan:
    """What a run of the configurations costs. Raises SheetError, PlanError or ValueError where a
    configuration, a sheet or the workflow is wrong."""
    settings = settings_of(configs)
    known = costs.read(Path(sheets.located("resources")))
    return table.add(jobs.planned(configs), models_of(settings), known, is_cached)


def measured(name: str) -> Mapping[str, str]:
    """What resources/measured tells of a run of this name, nothing where it never was measured."""
    path = Path(sheets.located("resources/measured")) / f"{name}.tsv"
    return extracts.heads(path)[0] if path.is_file() else {}
