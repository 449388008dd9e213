"""Costs of a run by stage, and of its models by size, as text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgprobe.plan.costs import Costs, model_of, weights_gb
from kgprobe.plan.jobs import Job

STAGES = ("sources", "knowledge", "benchmarks", "models", "probes", "tables")
#: sizes of models: at most so many millions of weights
SIZES = {
    "to 200 M": 200,
    "to 1 B": 1000,
    "to 3 B": 3000,
    "to 10 B": 10000,
    "larger": float("inf"),
}
HOUR = 3600


@dataclass
class Sum:
    """What the jobs of a stage add up to: those to do, and the number of those that are done."""

    jobs: int = 0
    done: int = 0
    download_gb: float = 0
    disk_gb: float = 0
    requests: float = 0
    cpu_h: float = 0
    model_cpu_h: float = 0
    gpu_h: float = 0
    estimated: bool = False


@dataclass
class Size:
    """What models of one size take; `memory_gb` is what the largest job asks for."""

    models: set[str] = field(default_factory=set)
    jobs: int = 0
    download_gb: float = 0
    memory_gb: float = 0
    model_cpu_h: float = 0
    gpu_h: float = 0
    estimated: bool = False


@dataclass
class Plan:
    """The sums, and what could not be priced."""

    stages: dict[str, Sum]
    sizes: dict[str, Size]
    cached: list[str]
    unpriced: list[str]


def stage(job: Job) -> str:
    """The stage of a job: the folder of its log, where all that models answer are probes."""
    parts = job.log.split("/")
    name = parts[2] if len(parts) > 2 else "tables"
    return name if name in STAGES else "probes"


def size_of(parameters_m: float) -> str:
    """The class of a size."""
    return next(name for name, most in SIZES.items() if parameters_m <= most)


def add(
    jobs: Iterable[Job],
    models: Mapping[str, Mapping[str, str]],
    costs: Costs,
    is_cached: Callable[[Mapping[str, str]], bool],
) -> Plan:
    """The costs of all jobs; a model that several ask is downloaded once, with the first of them.

    `models`: rows of models.tsv by name; `is_cached`: whether its weights are on this machine.
    """
    plan = Plan({name: Sum() for name in STAGES}, {name: Size() for name in SIZES}, [], [])
    seen: set[str] = set()
    for job in jobs:
        own = plan.stages[stage(job)]
        if not job.to_do:
            own.done += 1
            continue
        own.jobs += 1
        model = model_of(job)
        row = models.get(model, {})
        cost = costs.of(job, row.get("kind", "*"))
        if cost is None:
            plan.unpriced += [] if job.rule in plan.unpriced else [job.rule]
            continue
        own.download_gb += cost.download_mb / 1000
        own.disk_gb += cost.disk_mb / 1000
        own.requests += cost.requests
        own.cpu_h += cost.cpu_s / HOUR
        own.estimated |= cost.basis == "estimated"
        if not row or row["kind"] == "api":
            continue
        parameters = float(row.get("parameters") or 0)
        size = plan.sizes[size_of(parameters)]
        cpu, gpu = (
            costs.seconds(device, row["dtype"], cost.positions_m, parameters) / HOUR
            for device in ("cpu", "gpu")
        )
        is_measured = cost.basis == "measured" and costs.is_measured("gpu", row["dtype"])
        own.estimated |= not is_measured
        size.estimated |= not is_measured
        own.model_cpu_h += cpu
        own.gpu_h += gpu
        size.jobs += 1
        size.model_cpu_h += cpu
        size.gpu_h += gpu
        size.memory_gb = max(size.memory_gb, job.mem_mb / 1000)
        if model not in seen:
            seen.add(model)
            size.models.add(model)
            _weights(model, row, plan, size, is_cached)
    return plan


def _weights(
    model: str,
    row: Mapping[str, str],
    plan: Plan,
    size: Size,
    is_cached: Callable[[Mapping[str, str]], bool],
) -> None:
    """Add a model's weights to what is downloaded, unless they are here."""
    gigabytes = weights_gb(row)
    if not gigabytes:
        return
    if is_cached(row):
        plan.cached.append(model)
        return
    own = plan.stages["models"]
    own.download_gb += gigabytes
    own.disk_gb += gigabytes
    # configuration, tokenizer, weights: at least so many files
    own.requests += 5
    own.estimated = True
    size.download_gb += gigabytes


def text(plan: Plan, name: str, what: Sequence[str]) -> str:
    """The plan as it is printed; `name` of the run, `what` was configured."""
    head = ["stage", "jobs", "done", "GB to load", "GB disk", "requests", "CPU h"]
    head += ["GPU h", "or CPU h", ""]
    total = Sum()
    lines = [head]
    for stage_name, own in plan.stages.items():
        lines.append(_line(stage_name, own))
        for column in vars(total):
            setattr(total, column, getattr(total, column) + getattr(own, column))
    lines.append(_line("all", total))
    sizes = [["size", "models", "jobs", "GB to load", "GB memory", "GPU h", "or CPU h", ""]]
    for size_name, size in plan.sizes.items():
        if size.jobs:
            numbers = [size.download_gb, size.memory_gb, size.gpu_h, size.model_cpu_h]
            shown = [str(len(size.models)), str(size.jobs), *map(_number, numbers)]
            sizes.append([size_name, *shown, "estimated" if size.estimated else "measured"])
    parts = [f"run {name}: {', '.join(what)}", _aligned(lines), _aligned(sizes)]
    notes = [
        "done: outputs stand already. CPU h: cores, without the arithmetic of models; that is "
        "GPU h on one accelerator, or CPU h on one core.",
        "Costs of jobs: resources/costs.tsv, rates of devices: resources/rates.tsv; estimated: a "
        "part of the line is.",
    ]
    if any(size.estimated for size in plan.sizes.values()):
        notes.append("GPU hours are estimated; perf/device.py measures an accelerator.")
    if plan.cached:
        notes.append(f"weights that are here: {', '.join(plan.cached)}")
    if plan.unpriced:
        notes.append(f"not in resources/costs.tsv, counted as nothing: {', '.join(plan.unpriced)}")
    return "\n\n".join(parts if len(sizes) > 1 else parts[:2]) + "\n\n" + "\n".join(notes)


def _line(name: str, own: Sum) -> list[str]:
    numbers = [own.download_gb, own.disk_gb, own.requests, own.cpu_h, own.gpu_h, own.model_cpu_h]
    mark = "estimated" if own.estimated else "measured" if own.jobs else ""
    return [name, str(own.jobs), str(own.done), *map(_number, numbers), mark]


def _number(value: float) -> str:
    """Three digits that say something."""
    if not value:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns side by side, the first and the last to the left, numbers to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    last = len(widths) - 1
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in (0, last) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
