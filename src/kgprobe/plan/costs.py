"""What a job costs: a row of resources/costs.tsv, and the arithmetic of its model.

    seconds of a device = positions x weights x 2 / operations a second

two operations for a weight and position, as every linear layer has; attention over sentences of
some twenty tokens adds less than a tenth. Rates stand in resources/rates.tsv. Every number is
`measured` or `estimated`, and a sum is estimated where one part is.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path
from typing import Literal

from kgprobe.plan.jobs import Job
from kgprobe.sheets import SheetError, read_table

Basis = Literal["measured", "estimated"]
#: bytes of a weight in a checkpoint of the hub, where it is not four: by the start of its name
STORED = {
    "facebook/opt": 2, "meta-llama/": 2, "mistralai/": 2, "google/gemma": 2, "microsoft/phi": 2,
    "HuggingFaceTB/SmolLM2": 2,
}  # fmt: skip
#: rules of which there is one for every model: each of their files is priced by its path
ASKED = ("prompts_", "probes_")
#: what an RDF file ends in: a pull that reads one asks no public endpoint
RDF = (".nt", ".nt.gz", ".nt.bz2", ".ttl", ".ttl.gz", ".rdf", ".owl", ".owl.gz")


@dataclass(frozen=True)
class Cost:
    """What a job takes: core seconds without its model's arithmetic, 10^6 bytes, requests, and
    millions of positions that its model reads."""

    cpu_s: float = 0
    download_mb: float = 0
    disk_mb: float = 0
    requests: float = 0
    positions_m: float = 0
    basis: Basis = "measured"

    def __add__(self, other: "Cost") -> "Cost":
        """Both together; estimated where one of them is."""
        basis: Basis = "estimated" if "estimated" in (self.basis, other.basis) else "measured"
        numbers = [f.name for f in fields(Cost) if f.name != "basis"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return Cost(**sums, basis=basis)


@dataclass(frozen=True)
class Row:
    """A row of the table: which jobs it fits, and what each of them costs.

    `of` is one of a job's wildcards or inputs; of the rules of models it is a file, below the run's
    folder.
    """

    rule: str
    of: str
    kind: str
    cost: Cost

    def fits(self, rule: str, known: Iterable[str], kind: str) -> bool:
        """Whether this row is about a rule, something known of its job, and a kind of model."""
        return (
            fnmatch.fnmatchcase(rule, self.rule)
            and any(fnmatch.fnmatchcase(value, self.of) for value in known)
            and fnmatch.fnmatchcase(kind, self.kind)
        )


class Costs:
    """The table of costs and of rates; `rates`: (device, dtype) -> 10^12 operations a second, and
    whether they were measured."""

    def __init__(
        self, rows: Iterable[Row], rates: Mapping[tuple[str, str], tuple[float, bool]]
    ) -> None:
        self.rows, self.rates = list(rows), dict(rates)

    def of(self, job: Job, kind: str) -> Cost | None:
        """What a job costs; None where no row fits."""
        if job.rule.startswith(ASKED):
            parts = [self._of(job.rule, [_below(path)], kind) for path in job.outputs]
            known = [cost for cost in parts if cost]
            return reduce(Cost.__add__, known) if known and len(known) == len(parts) else None
        found = self._of(job.rule, [*job.wildcards.values(), *job.inputs, ""], kind)
        if found and asks_nobody(job):
            return Cost(found.cpu_s, 0, found.disk_mb, 0, 0, found.basis)
        return found

    def _of(self, rule: str, known: Iterable[str], kind: str) -> Cost | None:
        known = list(known)
        return next((row.cost for row in self.rows if row.fits(rule, known, kind)), None)

    def seconds(self, device: str, dtype: str, positions_m: float, parameters_m: float) -> float:
        """Seconds of `device` (cpu: one core, gpu) that the arithmetic takes."""
        rate, _ = self._rate(device, dtype)
        return 2 * positions_m * 1e6 * parameters_m * 1e6 / (rate * 1e12)

    def is_measured(self, device: str, dtype: str) -> bool:
        """Whether the rate of a device was measured on one."""
        return self._rate(device, dtype)[1]

    def _rate(self, device: str, dtype: str) -> tuple[float, bool]:
        return self.rates[device, "float32" if dtype.startswith("float32") else "bfloat16"]


def read(folder: Path) -> Costs:
    """costs.tsv and rates.tsv of a folder. Raises SheetError with file, row and what is legal."""
    path = folder / "costs.tsv"
    numbers = [f.name for f in fields(Cost) if f.name != "basis"]
    rows = []
    for row in read_table(path):
        if row["basis"] not in ("measured", "estimated"):
            where = f"{path}, rule {row['rule']}"
            raise SheetError(f"{where}: basis {row['basis']!r}; legal: measured, estimated")
        try:
            values = {name: float(row[name]) for name in numbers}
        except ValueError as problem:
            raise SheetError(f"{path}, rule {row['rule']}: {problem}") from None
        basis: Basis = "measured" if row["basis"] == "measured" else "estimated"
        rows.append(Row(row["rule"], row["of"], row["kind"], Cost(**values, basis=basis)))
    rates = {
        (row["device"], row["dtype"]): (float(row["tflops"]), row["basis"] == "measured")
        for row in read_table(folder / "rates.tsv")
    }
    return Costs(rows, rates)


def asks_nobody(job: Job) -> bool:
    """Whether a pull reads RDF files, which a local endpoint serves."""
    return job.rule.startswith("pull") and any(name.endswith(RDF) for name in job.inputs)


def model_of(job: Job) -> str:
    """The model that a job asks, or nothing."""
    if job.rule.startswith(ASKED):
        return job.rule.partition("_")[2]
    return ""


def _below(path: str) -> str:
    """A path below the folder of its run, results/<run>."""
    return "/".join(path.split("/")[2:])


def weights_gb(row: Mapping[str, str]) -> float:
    """10^9 bytes of a model's checkpoint on the hub; 0 for models of other sources."""
    scheme, _, name = row["source"].partition(":")
    if scheme != "hub":
        return 0.0
    stored = next((size for start, size in STORED.items() if name.startswith(start)), 4)
    return float(row.get("parameters") or 0) * stored / 1000
