"""The engine that runs all joins over statements, and helpers to write them as Ibis expressions.

The expressions use only features of both DuckDB and Spark: no unsigned arithmetic, no SQL text.
`engine_duckdb` and `engine_spark` execute them.
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

#: All nine attributes of 1 M statements were built in this memory: one thread, no sensitivity.
LEAST_MB = 100
#: MB of a job that the process needs besides joins
PROCESS_MB = 500
#: Fraction of the remaining memory for joins: frames leave the engine, and the allocator holds
#: memory for a while after the engine has freed it.
JOINS_PROPORTION = 0.65
#: rows per frame that leaves the engine
PART = 1 << 20
#: XOR with it maps the order of unsigned numbers to that of signed numbers with the same bits
SIGN = -(1 << 63)


class EngineError(ValueError):
    """The engine lacks memory or disk; the message says how much is needed or what to change."""


def joins_mb(mem_mb: int) -> int:
    """Return the memory for joins in a job with this many MB."""
    return int((mem_mb - PROCESS_MB) * JOINS_PROPORTION)


def job_mb(joins: int) -> int:
    """Return the minimum `mem_mb` of a job whose joins need this many MB."""
    return PROCESS_MB + math.ceil(joins / JOINS_PROPORTION)


class Engine(ABC):
    """Tables and expressions over them; all are dropped at the end of the `with` block.

    An engine stays within its memory and spills the rest to a folder. Literals have negative
    numbers, entities non-negative ones, as no engine exchanges unsigned numbers with Arrow.
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
        """Close the connection and remove spilled data."""

    @abstractmethod
    def demand(self, needed_mb: int, what: str) -> None:
        """Raise EngineError if the joins of `what` need more MB than the engine has."""

    @abstractmethod
    def files(self, paths: Sequence[str | Path]) -> Table:
        """Return the rows of parquet files; every query reads them again."""

    @abstractmethod
    def table(self, frame: pl.DataFrame) -> Table:
        """Load a small frame, for use in a join."""

    @abstractmethod
    def parts(self, rows: Table, order: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield sorted rows in frames of limited size; only one of them is in memory."""

    @abstractmethod
    def _keep(self, rows: Table, name: str) -> Table: ...

    @abstractmethod
    def _frame(self, rows: Table) -> pl.DataFrame: ...

    @abstractmethod
    def _forget(self, name: str) -> None: ...

    def keep(self, rows: Table, shared: bool = False) -> Table:
        """Compute the rows of an expression once, and keep them in memory or the spill folder.

        `shared`: reuse them for every equal expression, and keep them after `temporary`.
        """
        if not shared:
            return self._keep(rows, self._name())
        if rows.op() not in self._shared:
            self._shared[rows.op()] = self._keep(rows, next(self._names))
        return self._shared[rows.op()]

    @contextmanager
    def temporary(self) -> Iterator[None]:
        """Drop the tables of frames and kept rows at the end, except shared ones."""
        outer, self._temporary = self._temporary, []
        try:
            yield
        finally:
            for name in self._temporary:
                self._forget(name)
            self._temporary = outer

    def frame(self, rows: Table) -> pl.DataFrame:
        """Return the rows of an expression, unordered; all integers become Int64."""
        return self._frame(rows).with_columns(pl.selectors.integer().cast(pl.Int64))

    def numbers(self, row: Table) -> dict[str, int]:
        """Return the integers in a one-row table of aggregates; a sum over no rows is 0."""
        return {name: int(n or 0) for name, n in self.frame(row).row(0, named=True).items()}

    def count(self, rows: Table) -> int:
        """Return the number of rows of an expression."""
        return self.numbers(rows.aggregate(n=rows.count()))["n"]

    def write(
        self,
        rows: Table,
        contract: Contract,
        path: str | Path,
        provenance: Mapping[str, object] | None = None,
    ) -> None:
        """Write the rows of an expression like `schema.write`, in frames of limited size."""
        columns = [pl.col(name).cast(dtype) for name, dtype in contract.columns.items()]
        parts = (part.select(columns) for part in self.parts(rows, contract.key))
        write_sorted(parts, contract, path, provenance)

    def _name(self) -> str:
        name = next(self._names)
        if self._temporary is not None:
            self._temporary.append(name)
        return name


def count_rows(rows: Table, by: Sequence[str], **more: Any) -> Table:
    """Return (by, n, more): the number of rows of every stratum, and more aggregates."""
    return rows.group_by(list(by)).aggregate(n=rows.count(), **more)


def _keys(rows: pa.Array) -> pa.Array:
    """Hash rows of (seed, numbers...) to keys."""
    if not len(rows):
        return pa.array([], pa.int64())
    numbers = np.asarray(pc.list_flatten(rows)).view(np.uint64).reshape(len(rows), -1)
    return pa.array(reduce(mixed, numbers.T).view(np.int64) ^ SIGN)


_KEYS = ibis.udf.scalar.pyarrow(_keys, signature=((dt.Array(dt.int64),), dt.int64))


def keys(rows: Table, seed: int, ids: Sequence[str], label: str) -> IntegerColumn:
    """Return the keys of rows of numbers (`sampling.mixed`) as signed 64 bits that sort like
    unsigned ones."""
    start = ibis.literal(signed(hash_key(seed, label)), "int64")
    return _KEYS(ibis.array([start, *(rows[name].cast("int64") for name in ids)]))


def _text_keys(rows: pa.Array) -> pa.Array:
    hashes = (hash_key(int(seed), *parts) for seed, *parts in rows.to_pylist())
    return pa.array([signed(key) ^ SIGN for key in hashes], pa.int64())


_TEXT_KEYS = ibis.udf.scalar.pyarrow(_text_keys, signature=((dt.Array(dt.string),), dt.int64))


def text_keys(seed: int, texts: Sequence[Column], label: str) -> IntegerColumn:
    """Return `sampling.keys` of every row as signed 64 bits that sort like unsigned ones."""
    return _TEXT_KEYS(ibis.array([ibis.literal(str(seed)), ibis.literal(label), *texts]))


def signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key


def first(rows: Table, n: int, order: Sequence[str | Column], by: Sequence[str] = ()) -> Table:
    """Return the first `n` rows of every stratum `by`, in an order that must have no ties."""
    if not by:
        return rows.order_by(list(order)).limit(n)
    window = ibis.window(group_by=list(by), order_by=list(order))
    ranked = rows.mutate(_place=ibis.row_number().over(window))
    return ranked.filter(ranked["_place"] < n).drop("_place")


def _by_unicode(name: str, change: Callable[[pl.Series], pl.Series]) -> Any:
    """Return a text function by Unicode rules; engines differ in whitespace and case rules."""

    def changed(text: pa.Array) -> pa.Array:
        values = change(pl.Series(pl.from_arrow(text), dtype=pl.String))
        return values.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())

    changed.__name__ = name
    return ibis.udf.scalar.pyarrow(changed, signature=((dt.string,), dt.string))


#: text without surrounding whitespace, and case-folded text, in which STRASSE is Straße
stripped = _by_unicode("stripped", lambda texts: texts.str.strip_chars())
folded = _by_unicode(
    "folded", lambda texts: texts.map_elements(str.casefold, return_dtype=pl.String)
)
