"""Which benchmarks can be built from a user-supplied graph, and why others cannot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgprobe.schema import Contract, read

_COLUMNS = {"benchmark": pl.String, "built": pl.Boolean, "reason": pl.String}
ALLOWED = Contract("ALLOWED", _COLUMNS, ("benchmark",))


@dataclass(frozen=True)
class Allowed:
    """A benchmark: whether it can be built, and its size or what is missing."""

    benchmark: str
    built: bool
    reason: str


def describe(results: str | Path) -> list[str]:
    """Return a line per user-supplied graph of a run: its benchmarks, and the file of reasons."""
    lines = []
    for path in sorted(Path(results).glob("sources/*/allows.parquet")):
        rows = read(path, ALLOWED)
        built = {"allows": rows.filter("built"), "not": rows.filter(~rows["built"])}
        parts = [f"{w} {', '.join(some['benchmark'])}" for w, some in built.items() if some.height]
        lines.append(f"{path.parent.name}: {'; '.join(parts)} ({path.with_suffix('.tsv')})")
    return lines


def text(rows: Sequence[Allowed]) -> str:
    """Format the rows as a tab-separated table."""
    words = {True: "built", False: "not built"}
    lines = [f"{row.benchmark}\t{words[row.built]}\t{row.reason}" for row in rows]
    return "\n".join(["benchmark\tbuilt\treason", *lines, ""])


def try_construction(benchmark: str, construction: Callable[[], str]) -> Allowed:
    """Run a construction; return the size that it reports, or the reason for its ValueError (its
    attribute `reason`, or its message)."""
    try:
        return Allowed(benchmark, True, construction())
    except ValueError as lacking:
        reason = getattr(lacking, "reason", "") or str(lacking)
        return Allowed(benchmark, False, "; ".join(line.strip() for line in reason.splitlines()))
