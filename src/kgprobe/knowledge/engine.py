"""The engine of all joins over statements, and the expressions that they are written in.

Ibis expressions that stay with what DuckDB and Spark both have: no unsigned arithmetic, no text of
SQL. `engine_duckdb` and `engine_spark` carry them out.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import polars as pl
import pyarrow as pa
from ibis.expr.types import Column, IntegerColumn, StringColumn, Table

from kgprobe.contracts import Contract
from kgprobe.sampling import hash_key, mixed
from kgprobe.schema import write_sorted

#: Within this all nine attributes of 1 M statements were built, one thread, without sensitivity.
LEAST_MB = 100
#: MB of a job that the process takes before it joins anything
PROCESS_MB = 500
#: Share of the rest that is the joins': frames leave the engine, and what it gives back, the
#: allocator keeps a while.
SHARE = 0.65
#: rows that leave the engine at a time
PART = 1 << 20
#: turns the order of signed numbers into that of the unsigned ones with the same bits
SIGN = -(1 << 63)


class EngineError(ValueError):
    """The engine cannot work within what it was given; the message says what would do."""


def joins_mb(mem_mb: int) -> int:
    """What joins may hold in a job of so many MB."""
    return int((mem_mb - PROCESS_MB) * SHARE)


def job_mb(joins: int) -> int:
    """The least `mem_mb` of a job whose joins may hold so many MB."""
    return PROCESS_MB + math.ceil(joins / SHARE)


class Engine(ABC):
    """Tables and the expressions over them, all gone on leaving `with`.

    An engine holds no more than it was given; what does not fit lies in its spill folder.
    """

    def __init__(self) -> None:
        self._names = (f"kept_{n}" for n in itertools.count())
        self._passing: list[str] | None = None

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Ends the connection and removes what was spilled."""

    @abstractmethod
    def demand(self, needed_mb: int, what: str) -> None:
        """Raises EngineError where the joins of `what` need more MB than the engine has."""

    @abstractmethod
    def files(self, paths: Sequence[str | Path]) -> Table:
        """The rows of parquet files, read anew by every query."""

    @abstractmethod
    def table(self, frame: pl.DataFrame) -> Table:
        """A small frame, as the side of a join."""

    @abstractmethod
    def keep(self, rows: Table, stays: bool = False) -> Table:
        """The rows of an expression, computed once; they lie in memory or in the spill folder."""

    def frame(self, rows: Table) -> pl.DataFrame:
        """The rows of an expression, in no order; all whole numbers are Int64."""
        # engines differ in how wide a number is and in whether it has a sign
        return self._frame(rows).with_columns(pl.selectors.integer().cast(pl.Int64))

    @abstractmethod
    def _frame(self, rows: Table) -> pl.DataFrame:
        """The rows of an expression as the engine gives them."""

    @abstractmethod
    def parts(self, kept: Table, order: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows of a kept table in an order, so many at a time; none is held but these."""

    @abstractmethod
    def _forget(self, name: str) -> None:
        """Gives the room of a table back."""

    @contextmanager
    def passing(self) -> Iterator[None]:
        """What is kept inside goes at the end, but what was asked to stay (`keep(rows, True)`)."""
        outer, self._passing = self._passing, []
        try:
            yield
        finally:
            for name in self._passing:
                self._forget(name)
            self._passing = outer

    def drop(self, kept: Table) -> None:
        """Forgets what `keep` gave, and gives its room back."""
        self._forget(kept.op().name)

    def write(
        self,
        kept: Table,
        contract: Contract,
        path: str | Path,
        provenance: Mapping[str, object] | None = None,
    ) -> None:
        """`schema.write` of a kept table, so many rows at a time."""
        parts = (under(part, contract) for part in self.parts(kept, contract.key))
        write_sorted(parts, contract, path, provenance)

    def numbers(self, row: Table) -> dict[str, int]:
        """The whole numbers of a table of one row of aggregates; a sum of no row is 0."""
        found = self.frame(row).row(0, named=True)
        return {name: int(value or 0) for name, value in found.items()}

    def _name(self, passes: bool = False) -> str:
        name = next(self._names)
        if passes and self._passing is not None:
            self._passing.append(name)
        return name


def under(rows: pl.DataFrame, contract: Contract) -> pl.DataFrame:
    """Rows of the engine as a file has them: the columns and types of a contract.

    Numbers of 64 bits that are negative inside the engine are the same bits without a sign.
    """
    return rows.select(
        pl.col(name).cast(pl.Int64).reinterpret(signed=False)
        if dtype == pl.UInt64
        else pl.col(name).cast(dtype)
        for name, dtype in contract.columns.items()
    )


def counted(rows: Table, by: Sequence[str], **more: Any) -> Table:
    """(by, n, more): how many rows every stratum has, and further aggregates."""
    return rows.group_by(list(by)).aggregate(n=rows.count(), **more)


def _mixed(key: pa.Array, *columns: pa.Array) -> pa.Array:
    start = np.asarray(key).view(np.uint64)
    for column in columns:
        start = mixed(start, np.asarray(column).view(np.uint64))
    return pa.array(start.view(np.int64))


def _mixed_1(key: pa.Array, a: pa.Array) -> pa.Array:
    return _mixed(key, a)


def _mixed_2(key: pa.Array, a: pa.Array, b: pa.Array) -> pa.Array:
    return _mixed(key, a, b)


def _mixed_3(key: pa.Array, a: pa.Array, b: pa.Array, c: pa.Array) -> pa.Array:
    return _mixed(key, a, b, c)


#: by how many columns one call takes; what a call costs is the way there and back
_MIXED = {
    n: ibis.udf.scalar.pyarrow(function, signature=((dt.int64,) * (n + 1), dt.int64))
    for n, function in enumerate((_mixed_1, _mixed_2, _mixed_3), 1)
}


def keys(rows: Table, seed: int, ids: Sequence[str], label: str) -> IntegerColumn:
    """`sampling.integer_keys` of every row: 64 bits, signed, in the order of the unsigned ones."""
    key: Any = ibis.literal(signed(hash_key(seed, label)), "int64")
    most = max(_MIXED)
    for some in (ids[at : at + most] for at in range(0, len(ids), most)):
        key = _MIXED[len(some)](key, *(rows[name].cast("int64") for name in some))
    return key ^ ibis.literal(SIGN, "int64")


def signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key


def first(rows: Table, n: int, order: Sequence[str | Column], by: Sequence[str] = ()) -> Table:
    """The first `n` rows of every stratum `by` in an order that leaves no tie."""
    if not by:
        return rows.order_by(list(order)).limit(n)
    window = ibis.window(group_by=list(by), order_by=list(order))
    ranked = rows.mutate(_place=ibis.row_number().over(window))
    return ranked.filter(ranked["_place"] < n).drop("_place")


def _stripped(text: pa.Array) -> pa.Array:
    return _strings(pl.Series(pl.from_arrow(text), dtype=pl.String).str.strip_chars())


def _lowered(text: pa.Array) -> pa.Array:
    return _strings(pl.Series(pl.from_arrow(text), dtype=pl.String).str.to_lowercase())


def _strings(values: pl.Series) -> pa.Array:
    return values.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


_STRIPPED = ibis.udf.scalar.pyarrow(_stripped, signature=((dt.string,), dt.string))
_LOWERED = ibis.udf.scalar.pyarrow(_lowered, signature=((dt.string,), dt.string))


def stripped(text: StringColumn) -> StringColumn:
    """Text without white space around it, by Unicode; engines differ in what that is."""
    return _STRIPPED(text)


def lowered(text: StringColumn) -> StringColumn:
    """Text in lower case, by Unicode; engines differ in what that is."""
    return _LOWERED(text)
