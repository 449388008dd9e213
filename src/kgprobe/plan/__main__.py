"""What a run costs before it begins: `make plan CONFIG=config/config.yaml`.

    python -m kgprobe.plan CONFIG ...

prints jobs, downloads, disk, requests, hours and what is there already, by stage, and the models'
part by size. Asks nothing outside this machine.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from huggingface_hub import try_to_load_from_cache
from snakemake.utils import update_config

from kgprobe import sheets
from kgprobe.config import read as read_config
from kgprobe.plan import costs, jobs, table
from kgprobe.settings import Settings

#: one of them is in the cache where a model's weights are
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
BASE = "config/config.yaml"


def settings_of(configs: Sequence[str]) -> Settings:
    """The settings of the files, laid over config.yaml as Snakemake does it."""
    files = [sheets.located(BASE), *(c for c in configs if Path(c).name != Path(BASE).name)]
    merged: dict[str, object] = {}
    for path in files:
        update_config(merged, yaml.safe_load(sheets.read_text(path)) or {})
    return read_config(merged, files)


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


def main(configs: Sequence[str]) -> int:
    """Print the plan of the configuration; 1 where there is none."""
    try:
        plan = planned(configs)
    except (sheets.SheetError, jobs.PlanError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(table.text(plan, settings_of(configs).run.name, configs or [BASE]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
