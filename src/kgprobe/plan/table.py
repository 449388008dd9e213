"""Costs of a run by stage, and of its models by size, as rows of text."""

from collections.abc import Callable, Iterable, Mapping
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
#: a number that is 0
NOTHING = "-"


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


def stages(plan: Plan) -> list[dict[str, str]]:
    """A row of each stage and one of all; what no stage has is no column."""
    total = Sum()
    for own in plan.stages.values():
        for column in vars(total):
            setattr(total, column, getattr(total, column) + getattr(own, column))
    return _filled(
        {
            "stage": _marked(name, own), "jobs": f"{own.jobs:,}", "done": f"{own.done:,}",
            "load GB": _number(own.download_gb), "disk GB": _number(own.disk_gb),
            "requests": _number(own.requests), "CPU h": _number(own.cpu_h),
            "GPU h": _number(own.gpu_h), "or CPU": _number(own.model_cpu_h),
        }
        for name, own in {**plan.stages, "all": total}.items()
    )  # fmt: skip


def sizes(plan: Plan) -> list[dict[str, str]]:
    """A row of each size of models that are asked."""
    return _filled(
        {
            "size": _marked(name, own), "models": f"{len(own.models):,}", "jobs": f"{own.jobs:,}",
            "load GB": _number(own.download_gb), "RAM GB": _number(own.memory_gb),
            "GPU h": _number(own.gpu_h), "or CPU": _number(own.model_cpu_h),
        }
        for name, own in plan.sizes.items()
        if own.jobs
    )  # fmt: skip


def notes(plan: Plan, measured: Mapping[str, str]) -> list[str]:
    """What the columns mean and what they leave out; `measured`: what is known of the same run."""
    found = []
    if "CPU minutes of the jobs" in measured:
        found.append(
            "this run as it was measured: {jobs} jobs, {CPU minutes of the jobs} CPU minutes, "
            "{processor} ({date}, commit {commit})".format(**measured)
        )
    found += [
        "CPU h: cores, without the arithmetic of models; that is GPU h on one accelerator, or "
        "CPU h on one core. done: outputs stand already.",
        "~: a part is estimated, at the papers' sizes: smaller settings cost less. Costs of jobs: "
        "resources/costs.tsv, rates of devices: resources/rates.tsv.",
    ]
    if any(size.estimated for size in plan.sizes.values()):
        found.append("GPU hours are estimated; perf/device.py measures an accelerator.")
    if plan.cached:
        found.append(f"weights that are here: {', '.join(plan.cached)}")
    if plan.unpriced:
        found.append(f"not in resources/costs.tsv, counted as nothing: {', '.join(plan.unpriced)}")
    return found


def _filled(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """The rows without columns that say nothing in any of them."""
    found = list(rows)
    empty = {name for row in found for name in row} - {
        name for row in found for name, value in row.items() if value not in ("0", NOTHING)
    }
    return [{k: v for k, v in row.items() if k not in empty} for row in found]


def _marked(name: str, own: Sum | Size) -> str:
    return f"{name} ~" if own.estimated else name


def _number(value: float) -> str:
    """Three digits that say something."""
    if not value:
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"
