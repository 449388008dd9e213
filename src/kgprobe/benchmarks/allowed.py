"""Which benchmarks an own graph allows, and why not the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.schema import Contract

ALLOWED = Contract(
    "ALLOWED",
    {"benchmark": pl.String, "built": pl.Boolean, "reason": pl.String},
    ("benchmark",),
)


@dataclass(frozen=True)
class Allowed:
    """A benchmark: whether it can be built, and how large it is or what is lacking."""

    benchmark: str
    built: bool
    reason: str


def text(rows: Sequence[Allowed]) -> str:
    """The same as a tab-separated table."""
    words = {True: "built", False: "not built"}
    lines = [f"{row.benchmark}\t{words[row.built]}\t{row.reason}" for row in rows]
    return "\n".join(["benchmark\tbuilt\treason", *lines, ""])


def tried(benchmark: str, construction: Callable[[], str]) -> Allowed:
    """What a construction tells of its size, or the ValueError that says what it lacks."""
    try:
        return Allowed(benchmark, True, construction())
    except ValueError as lacking:
        return Allowed(benchmark, False, " ".join(str(lacking).split()))
