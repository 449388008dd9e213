"""The engine of all joins over statements, and the expressions that they are written in.

Ibis expressions that stay with what DuckDB and Spark both have: no unsigned arithmetic, no text of
SQL. `engine_duckdb` and `engine_spark` carry them out.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from ibis.expr.types import Column, IntegerColumn, Table

from kgprobe.contracts import Contract
from kgprobe.sampling import hash_key, mixed
from kgprobe.schema import write_sorted

#: Within this all nine attributes of 1 M statements were built, one thread, without sensitivity.
LEAST_MB = 100
#: MB of a job that the process takes before it joins anything
PROCESS_MB = 500
#: Fraction of the rest that is the joins': frames leave the engine, and what it gives back, the
#: allocator keeps a while.
JOINS_PROPORTION = 0.65
#: rows that leave the engine at a time
PART = 1 << 20
#: turns the order of signed numbers into that of the unsigned ones with the same bits
SIGN = -(1 << 63)


class EngineError(ValueError):
    """The engine cannot work in the memory or disk it was given; the message says what would do."""


def joins_mb(mem_mb: int) -> int:
    """What joins may hold in a job of so many MB."""
    return int((mem_mb - PROCESS_MB) * JOINS_PROPORTION)


def job_mb(joins: int) -> int:
    """The least `mem_mb` of a job whose joins may hold so many MB."""
    return PROCESS_MB + math.ceil(joins / JOINS_PROPORTION)


class Engine(ABC):
    """Tables and the expressions over them, all gone on leaving `with`.

    An engine holds no more than it was given; what does not fit lies in its spill folder. Literals
    have negative numbers, entities have others: no engine shares numbers without a sign with Arrow.
    """

    def __init__(self) -> None:
        self._names = (f"kept_{n}" for n in itertools.count())
        self._temporary: list[str] | None = None
        self._shared: dict[Any, Table] = {}

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End the connection and remove what was spilled."""

    @abstractmethod
    def demand(self, needed_mb: int, what: str) -> None:
        """Raise EngineError where the joins of `what` need more MB than the engine has."""

    @abstractmethod
    def files(self, paths: Sequence[str | Path]) -> Table:
        """The rows of parquet files, read anew by every query."""

    @abstractmethod
    def table(self, frame: pl.DataFrame) -> Table:
        """A small frame, as the side of a join."""

    @abstractmethod
    def parts(self, rows: Table, order: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Rows in an order, so many at a time; none is held but these."""

    @abstractmethod
    def _keep(self, rows: Table, name: str) -> Table: ...

    @abstractmethod
    def _frame(self, rows: Table) -> pl.DataFrame: ...

    @abstractmethod
    def _forget(self, name: str) -> None: ...

    def keep(self, rows: Table, shared: bool = False) -> Table:
        """The rows of an expression, computed once; they lie in memory or in the spill folder.

        `shared`: computed once however often the same expression comes, and not `temporary`.
        """
        if not shared:
            return self._keep(rows, self._name())
        if rows.op() not in self._shared:
            self._shared[rows.op()] = self._keep(rows, next(self._names))
        return self._shared[rows.op()]

    @contextmanager
    def temporary(self) -> Iterator[None]:
        """Tables of frames and kept rows go at the end, but those that are shared."""
        outer, self._temporary = self._temporary, []
        try:
            yield
        finally:
            for name in self._temporary:
                self._forget(name)
            self._temporary = outer

    def frame(self, rows: Table) -> pl.DataFrame:
        """The rows of an expression, in no order; all whole numbers are Int64."""
        return self._frame(rows).with_columns(pl.selectors.integer().cast(pl.Int64))

    def numbers(self, row: Table) -> dict[str, int]:
        """The whole numbers of a table of one row of aggregates; a sum of no row is 0."""
        return {name: int(n or 0) for name, n in self.frame(row).row(0, named=True).items()}

    def count(self, rows: Table) -> int:
        """The number of rows of an expression."""
        return self.numbers(rows.aggregate(n=rows.count()))["n"]

    def write(
        self,
        rows: Table,
        contract: Contract,
        path: str | Path,
        provenance: Mapping[str, object] | None = None,
    ) -> None:
        """`schema.write` of an expression, so many rows at a time."""
        columns = [pl.col(name).cast(dtype) for name, dtype in contract.columns.items()]
        parts = (part.select(columns) for part in self.parts(rows, contract.key))
        write_sorted(parts, contract, path, provenance)

    def _name(self) -> str:
        name = next(self._names)
        if self._temporary is not None:
            self._temporary.append(name)
        return name


def count_rows(rows: Table, by: Sequence[str], **more: Any) -> Table:
    """(by, n, more): how many rows every stratum has, and further aggregates."""
    return rows.group_by(list(by)).aggregate(n=rows.count(), **more)


def _keys(rows: pa.Array) -> pa.Array:
    """A seed and numbers in each row."""
    if not len(rows):
        return pa.array([], pa.int64())
    numbers = np.asarray(pc.list_flatten(rows)).view(np.uint64).reshape(len(rows), -1)
    return pa.array(reduce(mixed, numbers.T).view(np.int64) ^ SIGN)


_KEYS = ibis.udf.scalar.pyarrow(_keys, signature=((dt.Array(dt.int64),), dt.int64))


def keys(rows: Table, seed: int, ids: Sequence[str], label: str) -> IntegerColumn:
    """`sampling.integer_keys` of every row: 64 bits, signed, in the order of the unsigned ones."""
    start = ibis.literal(signed(hash_key(seed, label)), "int64")
    return _KEYS(ibis.array([start, *(rows[name].cast("int64") for name in ids)]))


def _text_keys(rows: pa.Array) -> pa.Array:
    hashes = (hash_key(int(seed), *parts) for seed, *parts in rows.to_pylist())
    return pa.array([signed(key) ^ SIGN for key in hashes], pa.int64())


_TEXT_KEYS = ibis.udf.scalar.pyarrow(_text_keys, signature=((dt.Array(dt.string),), dt.int64))


def text_keys(seed: int, texts: Sequence[Column], label: str) -> IntegerColumn:
    """`sampling.keys` of every row: 64 bits, signed, in the order of the unsigned ones."""
    return _TEXT_KEYS(ibis.array([ibis.literal(str(seed)), ibis.literal(label), *texts]))


def signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key


def first(rows: Table, n: int, order: Sequence[str | Column], by: Sequence[str] = ()) -> Table:
    """The first `n` rows of every stratum `by` in an order that leaves no tie."""
    if not by:
        return rows.order_by(list(order)).limit(n)
    window = ibis.window(group_by=list(by), order_by=list(order))
    ranked = rows.mutate(_place=ibis.row_number().over(window))
    return ranked.filter(ranked["_place"] < n).drop("_place")


def _by_unicode(name: str, change: Callable[[pl.Series], pl.Series]) -> Any:
    """A function of a column of text, by Unicode; engines differ in white space and in case."""

    def changed(text: pa.Array) -> pa.Array:
        values = change(pl.Series(pl.from_arrow(text), dtype=pl.String))
        return values.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())

    changed.__name__ = name
    return ibis.udf.scalar.pyarrow(changed, signature=((dt.string,), dt.string))


#: text without white space around it, and in lower case
stripped = _by_unicode("stripped", lambda texts: texts.str.strip_chars())
lowered = _by_unicode("lowered", lambda texts: texts.str.to_lowercase())
