"""Which benchmarks can be built from a user-supplied graph, and why others cannot."""

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from kgprobe.schema import Contract, read

#: One benchmark: whether it can be built, and its size or what is missing.
ALLOWED = Contract(
    "ALLOWED", {"benchmark": pl.String, "built": pl.Boolean, "reason": pl.String}, ("benchmark",)
)


def describe(results: str | Path) -> list[str]:
    """Return a line per user-supplied graph of a run: its benchmarks, and the file of reasons."""
    lines = []
    for path in sorted(Path(results).glob("sources/*/allows.parquet")):
        rows = read(path, ALLOWED)
        built = {"allows": rows.filter("built"), "not": rows.filter(~rows["built"])}
        parts = [f"{w} {', '.join(some['benchmark'])}" for w, some in built.items() if some.height]
        lines.append(f"{path.parent.name}: {'; '.join(parts)} ({path.with_suffix('.tsv')})")
    return lines


def text(rows: Sequence[tuple[str, bool, str]]) -> str:
    """Format rows of ALLOWED as a tab-separated table."""
    lines = [f"{name}\t{'built' if built else 'not built'}\t{why}" for name, built, why in rows]
    return "\n".join(["benchmark\tbuilt\treason", *lines, ""])


def try_construction(benchmark: str, construction: Callable[[], str]) -> tuple[str, bool, str]:
    """Run a construction; return a row of ALLOWED with the size that it reports, or the reason for
    its ValueError (its attribute `reason`, or its message)."""
    try:
        return benchmark, True, construction()
    except ValueError as lacking:
        reason = getattr(lacking, "reason", "") or str(lacking)
        return benchmark, False, "; ".join(line.strip() for line in reason.splitlines())
