"""Count how many rows each step of a construction keeps; used by all papers."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from kgprobe.schema import FUNNEL, Contract


@dataclass
class Funnel:
    """Counts per relation and step, in order of insertion.

    Positions count within a relation, or (`through`) over all relations.
    """

    benchmark: str
    through: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    #: the next position
    positions: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        relation: str,
        step: str,
        rows_in: int,
        rows_out: int,
        subjects: Iterable[Hashable] = (),
        answers: Iterable[Hashable] = (),
        reason: str = "",
    ) -> None:
        """Add a step: rows before and after it, distinct subjects and answers after it."""
        of = "" if self.through else relation
        named = {"benchmark": self.benchmark, "relation": relation, "step": step}
        counts = {"position": self.positions[of], "rows_in": rows_in, "rows_out": rows_out}
        self.positions[of] += 1
        ends = {"subjects": len(set(subjects)), "answers": len(set(answers))}
        totals = {"kept": rows_out, "dropped": rows_in - rows_out, "reason": reason}
        self.rows.append({**named, **counts, **ends, **totals})

    def count(self, step: str, kept: int, before: int | None = None, reason: str = "") -> None:
        """Add a step of a benchmark without relations; `before` defaults to `kept`."""
        self.add("", step, kept if before is None else before, kept, reason=reason)

    def frame(self, contract: Contract = FUNNEL) -> pl.DataFrame:
        """Return FUNNEL, or another contract of some of its columns, kept, dropped and reason."""
        rows = [[row[name] for name in contract.columns] for row in self.rows]
        return pl.DataFrame(rows, schema=dict(contract.columns), orient="row")

    def describe(self, some: Sequence[Mapping[str, Any]] | None = None) -> str:
        """Format the steps, or the given rows, as lines of a message."""
        return "\n".join(
            "{step}: {kept:,} kept, {dropped:,} dropped".format(**row)
            + (f" ({row['reason']})" if row["reason"] else "")
            for row in (self.rows if some is None else some)
        )
