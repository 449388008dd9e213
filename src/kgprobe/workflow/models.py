"""Resources of a model's jobs: weight files, devices, memory, threads."""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kgprobe import experiments
from kgprobe.config import ConfigError
from kgprobe.workflow.parts import PlannedPart
from kgprobe.workflow.run import Run
from kgprobe.workflow.sources import files_in

#: columns of models.tsv that an answer depends on
OF_MODEL = ("model", "kind", "source", "revision", "dtype", "bos",
            "quantized", "adapter", "device_map")  # fmt: skip
#: bytes per weight by dtype
WEIGHT = {"float32": 4, "bfloat16": 2, "float16": 2}


def of_model(run: Run, model: str) -> dict[str, str]:
    """Return the columns of models.tsv that affect an answer, and the folder of unpacked models."""
    row = run.models[model]
    known = {key: experiments.expand(row.get(key, "")) for key in OF_MODEL}
    return known | {"models_folder": f"results/{run.settings.run.name}/models"}


def server_url(run: Run, model: str) -> str:
    """Return the address of the server that a model is on, which its answers depend on, or ""."""
    is_served = run.models[model]["kind"] == "api"
    return os.environ.get(run.settings.api.url_variable, "").strip() if is_served else ""


def token_models(run: Run) -> list[dict[str, str]]:
    """Return the models whose tokenizers select facts. Raises ConfigError for an unknown one."""
    chosen = run.settings.prompt_tasks.facts.single_token_for
    if unknown := [name for name in chosen if name not in run.models]:
        raise ConfigError(
            f"config: prompt_tasks.facts.single_token_for: unknown model {', '.join(unknown)}; "
            f"valid: {', '.join(sorted(run.models))}"
        )
    return [of_model(run, name) for name in chosen]


def weights(run: Run, model: str) -> list[str]:
    """Return files of a model, and of its adapter, that the workflow makes or finds on disk."""
    row = run.models[model]
    kind, _, place = row["source"].partition(":")
    paths = {"control": f"<resources>/control/{place}/model.safetensors",
             "gguf": f"<results>/models/unpacked-{place}"}  # fmt: skip
    named = [place] if kind == "folder" else []
    if adapter := row.get("adapter"):
        named.append(adapter.partition(":")[2])
    return [*([paths[kind]] if kind in paths else []), *files_in(named)]


def token_files(run: Run) -> list[str]:
    """Return the files of the models whose tokenizers select facts. Raises ConfigError for an
    unknown model."""
    return [path for row in token_models(run) for path in weights(run, row["model"])]


def packed(run: Run, package: str) -> dict[str, str]:
    """Return kind and pinned sha256 of the model that a package contains as a GGUF file."""
    row = next(row for row in run.models.values() if row["source"] == f"gguf:{package}")
    return {name: row[name] for name in ("kind", "revision")}


def estimate_mb(run: Run, stages: Mapping[tuple[str, str], list[PlannedPart]]) -> dict[str, int]:
    """Estimate the MB that the rule of each stage and model requests, whatever the machine has."""
    return {
        f"{stage}_{model}": memory_of(run, parts, model)(None, threads_of(run, stage, model))
        for (stage, model), parts in stages.items()
    }


def accelerators(run: Run, model: str) -> int:
    """Return the number of GPUs that a job requests: 0 for a server's model or without one. A
    machine runs one such job at a time; a cluster schedules jobs by it. Raises ConfigError for an
    invalid KGPROBE_DEVICE."""
    device = os.environ.get("KGPROBE_DEVICE") or "auto"
    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"KGPROBE_DEVICE is {device!r}; valid: auto, cpu, cuda")
    is_here = Path("/dev/nvidia0").exists()
    wanted = device == "cuda" or (device == "auto" and is_here)
    return int(wanted and run.models[model]["kind"] != "api")


def memory_mb() -> int:
    """Return the memory of this machine, or of the container's or scheduler's cgroup, in MB."""
    bounds: list[int] = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such cgroup, or "max"
            bounds.append(int(Path(path).read_text()))
    return min(bounds) >> 20


def limits(is_local: bool) -> dict[str, int]:
    """Return the resources that all concurrent jobs may use together, unless the command line or
    profile sets them. Cluster nodes have their own GPUs and memory; servers and file hosts are
    shared."""
    most = {"sparql": 1, "api": 1, "downloads": 2}
    return {**most, "gpu": 1, "mem_mb": memory_mb()} if is_local else most


def threads_of(run: Run, stage: str, model: str) -> int:
    """Return the threads of a job: two if a model runs on the CPU, so that no core idles while the
    last model answers. Control models finish soon; a GPU, a server and a model spread over devices
    use one process."""
    row = run.models[model]
    is_elsewhere = row["kind"] == "api" or row.get("device_map") or accelerators(run, model)
    return 1 if stage != "probes" or experiments.is_control(row) or is_elsewhere else 2


def memory_of(run: Run, parts: Iterable[PlannedPart], model: str) -> Callable[[object, int], int]:
    """Return a function for the MB of the largest of some parts, times threads: each is a process.
    Counted are copies of the weights (gradients and their moments are copies), a third more for
    data, and the needs of a job without weights."""
    row, parts = run.models[model], list(parts)
    stored, least = WEIGHT[row["dtype"]], 4000
    each = stored
    if any(part.settings.get("without") == "trained weights" for part in parts):
        each = 2 * WEIGHT["float32"]  # random weights are drawn in float32
    if any(part.method in ("trained", "sweep") for part in parts):
        each, least = max(each, 4 * stored), 6000
    most = max(least, 2500 + int(row.get("parameters") or 0) * each * 4 // 3)
    return lambda wildcards, threads: most * threads
