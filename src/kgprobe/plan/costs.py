"""Estimated costs of a run before it begins: rows of resources/costs.tsv, summed by stage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from kgprobe.experiments import TableError, read_table
from kgprobe.plan.jobs import PlannedJob

STAGES = ("sources", "knowledge", "benchmarks", "models", "probes", "tables")
NUMBERS = ("cpu_s", "download_mb", "disk_mb", "requests")
#: bytes per weight in a checkpoint on the hub, if not four, by the beginning of its name
STORED = {"facebook/opt": 2, "meta-llama/": 2, "mistralai/": 2, "google/gemma": 2,
          "microsoft/phi": 2, "HuggingFaceTB/SmolLM2": 2}  # fmt: skip
#: prefixes of rules that exist once per model: each of their files is priced by its path
ASKED = ("prompts_", "probes_")
#: file extensions of RDF: a pull that reads such a file queries no public endpoint
RDF = (".nt", ".nt.gz", ".nt.bz2", ".ttl", ".ttl.gz", ".rdf", ".owl", ".owl.gz")
#: explanation of the columns and what they leave out
NOTES = (
    "CPU h: hours of one core, without the forward passes of models, whose time depends on the "
    "device. ~: partly estimated, for the sizes in the papers (resources/costs.tsv). Model weights "
    "count as if none were here."
)


@dataclass
class Cost:
    """CPU seconds, 10^6 bytes and requests to public services, for a number of jobs."""

    jobs: int = 0
    cpu_s: float = 0
    download_mb: float = 0
    disk_mb: float = 0
    requests: float = 0
    estimated: bool = False

    def add(self, other: "Cost") -> None:
        """Add another cost; the sum is estimated if either term is."""
        for name in ("jobs", *NUMBERS):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.estimated |= other.estimated


#: costs by stage
Stages = dict[str, Cost]
#: rows of costs.tsv with the cost of one job of each
Costs = Sequence[tuple[Mapping[str, str], Cost]]


def cost_of(job: PlannedJob, kind: str, costs: Costs) -> Cost | None:
    """Return the cost of a job from the first matching row for its model's kind, summed over its
    output files for jobs that query a model; None if no row matches."""
    known = [[*job.wildcards.values(), *job.inputs, ""]]
    if job.rule.startswith(ASKED):  # below the folder of the run
        known = [[path.split("/", 2)[2]] for path in job.outputs]
    whole = Cost()
    for names in known:
        for row, cost in costs:
            is_named = fnmatchcase(job.rule, row["rule"]) and fnmatchcase(kind, row["kind"])
            if is_named and any(fnmatchcase(name, row["of"]) for name in names):
                whole.add(cost)
                break
        else:
            return None
    return replace(whole, download_mb=0, requests=0) if asks_nobody(job) else whole


def read(path: Path) -> Costs:
    """Read costs.tsv. Raises TableError with the file, the row and the valid values."""
    rows = []
    for row in read_table(path):
        where = f"{path}, rule {row['rule']}"
        if row["basis"] not in ("measured", "estimated"):
            raise TableError(f"{where}: basis {row['basis']!r}; valid: measured, estimated")
        try:
            cost = Cost(0, *(float(row[name]) for name in NUMBERS))  # type: ignore[arg-type]
        except ValueError as problem:
            raise TableError(f"{where}: {problem}") from None
        rows.append((row, replace(cost, estimated=row["basis"] == "estimated")))
    return rows


def asks_nobody(job: PlannedJob) -> bool:
    """Return whether a pull reads RDF files instead of querying a public service."""
    return job.rule.startswith("pull") and any(name.endswith(RDF) for name in job.inputs)


def model_of(job: PlannedJob) -> str:
    """Return the model that a job queries, or ""."""
    return job.rule.partition("_")[2] if job.rule.startswith(ASKED) else ""


def stage(job: PlannedJob) -> str:
    """Return the stage of a job from the folder of its log; answers of models are "probes"."""
    name = job.log.split("/")[2] if job.log.count("/") > 1 else "tables"
    return name if name in STAGES else "probes"


def plan(
    jobs: Iterable[PlannedJob], models: Mapping[str, Mapping[str, str]], costs: Costs
) -> tuple[Stages, list[str]]:
    """Sum the costs of all jobs by stage, and list rules without a price; a model on the hub is
    downloaded once. `models`: rows of models.tsv by name."""
    stages, unpriced = {name: Cost() for name in STAGES}, dict[str, None]()
    hub: dict[str, Mapping[str, str]] = {}
    for job in jobs:
        row = models.get(model_of(job), {})
        if row.get("source", "").startswith("hub:"):
            hub[model_of(job)] = row
        cost = cost_of(job, row.get("kind", "*"), costs)
        stages[stage(job)].add(replace(cost or Cost(), jobs=1))
        if cost is None:
            unpriced[job.rule] = None
    for row in hub.values():
        size = weights_mb(row)
        # configuration, tokenizer, weights: at least five files
        stages["models"].add(Cost(0, 0, size, size, 5, True))
    return stages, list(unpriced)


def weights_mb(row: Mapping[str, str]) -> float:
    """Return the size of the weights of a model on the hub in 10^6 bytes."""
    name = row["source"].removeprefix("hub:")
    stored = next((size for start, size in STORED.items() if name.startswith(start)), 4)
    return float(row.get("parameters") or 0) * stored


def table(stages: Stages) -> list[dict[str, str]]:
    """Return a row for each stage and one for the total."""
    total = Cost()
    for cost in stages.values():
        total.add(cost)
    return [
        {
            "stage": f"{name} ~" if cost.estimated else name, "jobs": f"{cost.jobs:,}",
            "load GB": _number(cost.download_mb / 1000), "disk GB": _number(cost.disk_mb / 1000),
            "requests": _number(cost.requests), "CPU h": _number(cost.cpu_s / 3600),
        }
        for name, cost in {**stages, "all": total}.items()
    ]  # fmt: skip


def _number(value: float) -> str:
    """Format a number with two or three significant digits."""
    if not value:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"
