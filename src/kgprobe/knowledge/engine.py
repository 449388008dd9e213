"""The engine of all joins over statements: Ibis expressions on DuckDB under a stated memory limit.

What does not fit is spilled to a folder of the job. Expressions stay with what Spark has as well:
no unsigned arithmetic, no text of SQL. **Joins run as they are written**: the left side streams by
the right one, which is held, so the smaller side stands right. An optimiser knows how many distinct
values a column has and not how unevenly they lie, and hubs are what these graphs are made of.
"""

import itertools
import tempfile
from collections.abc import Iterator, Sequence
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

from kgprobe.sampling import hash_key, mixed

#: Within this all nine attributes of 1 M statements were built, one thread, without sensitivity.
LEAST_MB = 100
#: rows that leave the engine at a time
PART = 1 << 20
#: turns the order of signed numbers into that of the unsigned ones with the same bits
SIGN = -(1 << 63)


class EngineError(ValueError):
    """The engine cannot work within what it was given; the message says what would do."""


class Engine:
    """One connection, its memory and its spill folder, all gone on leaving `with`.

    `memory_mb`: what tables, joins and sorts may hold at a time. The process takes some 300 MB
    besides. Raises EngineError for less than LEAST_MB.
    """

    def __init__(self, memory_mb: int = 2000, threads: int = 1) -> None:
        if memory_mb < LEAST_MB:
            raise EngineError(
                f"memory_mb is {memory_mb:,}; less than {LEAST_MB} MB was never tried: "
                f"set attributes.memory_mb to {LEAST_MB} or more"
            )
        self._folder = tempfile.TemporaryDirectory(prefix="kgprobe-joins-")
        self.spill = Path(self._folder.name)
        self._names = (f"kept_{n}" for n in itertools.count())
        self._passing: list[str] | None = None
        self._backend = ibis.duckdb.connect(
            memory_limit=f"{memory_mb}MB",
            threads=threads,
            temp_directory=str(self.spill),
            # rows come in any order: all that leaves is sorted by a key
            preserve_insertion_order=False,
            disabled_optimizers="join_order,build_side_probe_side",
        )

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection and removes what was spilled."""
        self._backend.disconnect()
        self._folder.cleanup()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """What is kept inside goes at the end, but what was asked to stay (`keep(rows, True)`)."""
        outer, self._passing = self._passing, []
        try:
            yield
        finally:
            for name in self._passing:
                self._backend.drop_table(name, force=True)
            self._passing = outer

    def files(self, paths: Sequence[str | Path]) -> Table:
        """The rows of parquet files, read anew by every query."""
        return self._backend.read_parquet([str(path) for path in paths], table_name=self._name())

    def table(self, frame: pl.DataFrame) -> Table:
        """A small frame, as the side of a join."""
        rows = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        return self._backend.create_table(self._name(True), rows, temp=True)

    def keep(self, rows: Table, stays: bool = False) -> Table:
        """The rows of an expression, computed once; they lie in memory or in the spill folder."""
        return self._backend.create_table(self._name(not stays), rows, temp=True)

    def drop(self, kept: Table) -> None:
        """Forgets what `keep` gave, and gives its room back."""
        self._backend.drop_table(kept.op().name, force=True)

    def frame(self, rows: Table) -> pl.DataFrame:
        """The rows of an expression, in no order."""
        return pl.DataFrame(pl.from_arrow(self._backend.to_pyarrow(rows)))

    def parts(self, kept: Table, order: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows of a kept table in an order, so many at a time; none is held but these."""
        # else sorted parts of several threads may overtake each other on their way out
        self._backend.settings["preserve_insertion_order"] = True
        # Ibis 12.0.0 asks DuckDB 2.0.0 for batches by a name that is gone
        rows = self._backend.con.sql(ibis.to_sql(kept.order_by(list(order))))
        for batch in rows.to_arrow_reader(PART):
            yield pl.DataFrame(pl.from_arrow(batch))
        self._backend.settings["preserve_insertion_order"] = False

    def numbers(self, row: Table) -> dict[str, int]:
        """The whole numbers of a table of one row of aggregates; a sum of no row is 0."""
        found = self.frame(row).row(0, named=True)
        return {name: int(value or 0) for name, value in found.items()}

    def _name(self, passes: bool = False) -> str:
        name = next(self._names)
        if passes and self._passing is not None:
            self._passing.append(name)
        return name


def counted(rows: Table, by: Sequence[str], **more: Any) -> Table:
    """(by, n, more): how many rows every stratum has, and further aggregates."""
    return rows.group_by(list(by)).aggregate(n=rows.count(), **more)


def _mixed(key: pa.Array, value: pa.Array) -> pa.Array:
    start, column = (np.asarray(side).view(np.uint64) for side in (key, value))
    return pa.array(mixed(start, column).view(np.int64))


_MIXED = ibis.udf.scalar.pyarrow(_mixed, signature=((dt.int64, dt.int64), dt.int64))


def keys(rows: Table, seed: int, ids: Sequence[str], label: str) -> IntegerColumn:
    """`sampling.integer_keys` of every row: 64 bits, signed, in the order of the unsigned ones."""
    key: Any = ibis.literal(_signed(hash_key(seed, label)), "int64")
    for name in ids:
        key = _MIXED(key, rows[name].cast("int64"))
    return key ^ ibis.literal(SIGN, "int64")


def _signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key


def smallest(
    rows: Table, n: int, seed: int, ids: Sequence[str], by: Sequence[str] = (), label: str = ""
) -> Table:
    """`sampling.smallest` as an expression: at most `n` rows of every stratum `by`, by hash.

    Ties fall to `ids`, which must be unique within a stratum.
    """
    names = [*by, *ids]
    keyed = rows.mutate(_key=keys(rows, seed, names, label))
    return first(keyed, n, ["_key", *ids], by).drop("_key")


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
