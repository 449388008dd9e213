"""Which benchmarks an own graph allows, and why not the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgprobe.schema import Contract, read

_COLUMNS = {"benchmark": pl.String, "built": pl.Boolean, "reason": pl.String}
ALLOWED = Contract("ALLOWED", _COLUMNS, ("benchmark",))


@dataclass(frozen=True)
class Allowed:
    """A benchmark: whether it can be built, and how large it is or what is lacking."""

    benchmark: str
    built: bool
    reason: str


def describe(results: str | Path) -> list[str]:
    """A line on each own graph of a run's folder: what it allows, and where the reasons stand."""
    lines = []
    for path in sorted(Path(results).glob("sources/*/allows.parquet")):
        rows = read(path, ALLOWED)
        built = {"allows": rows.filter("built"), "not": rows.filter(~rows["built"])}
        parts = [f"{w} {', '.join(some['benchmark'])}" for w, some in built.items() if some.height]
        lines.append(f"{path.parent.name}: {'; '.join(parts)} ({path.with_suffix('.tsv')})")
    return lines


def text(rows: Sequence[Allowed]) -> str:
    """The same as a tab-separated table."""
    words = {True: "built", False: "not built"}
    lines = [f"{row.benchmark}\t{words[row.built]}\t{row.reason}" for row in rows]
    return "\n".join(["benchmark\tbuilt\treason", *lines, ""])


def try_construction(benchmark: str, construction: Callable[[], str]) -> Allowed:
    """The size that a construction reports, or the ValueError (its `reason`, if it has one) that
    names what is missing."""
    try:
        return Allowed(benchmark, True, construction())
    except ValueError as lacking:
        reason = getattr(lacking, "reason", "") or str(lacking)
        return Allowed(benchmark, False, "; ".join(line.strip() for line in reason.splitlines()))
