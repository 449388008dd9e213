"""Joins on one machine: DuckDB with a memory limit and a folder to spill to.

**Joins run as they are written**: the left side is streamed and the right side held in memory, so
the smaller side must be on the right. An optimizer knows the number of distinct values of a column
but not their skew, and these graphs have many hubs.
"""

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import ibis
import polars as pl
from ibis.expr.operations import DatabaseTable, Namespace
from ibis.expr.types import Table

from kgprobe.knowledge.engine import LEAST_MB, PART, Engine, EngineError, job_mb

#: the name under which a frame is registered while it is copied
GIVEN = "given"
#: the schema of temporary tables
KEPT = Namespace(catalog="temp", database="main")


class DuckDB(Engine):
    """One DuckDB connection, its memory and its spill folder.

    `memory_mb`: limit for tables, joins and sorts together. The process takes about 300 MB more.
    Raises EngineError for less than LEAST_MB, and if memory or disk run out.
    """

    def __init__(self, memory_mb: int = 2000, threads: int = 1) -> None:
        super().__init__()
        self._memory_mb = memory_mb
        self.demand(LEAST_MB, "anything")
        # DuckDB creates the folder when it first spills
        self.spill = Path(tempfile.gettempdir()) / f"kgprobe-joins-{uuid.uuid4().hex}"
        self._backend = ibis.duckdb.connect(
            memory_limit=f"{memory_mb}MB",
            threads=threads,
            temp_directory=str(self.spill),
            # row order is irrelevant, because all output is sorted by a key
            preserve_insertion_order=False,
            disabled_optimizers="join_order,build_side_probe_side",
        )

    def close(self) -> None:
        self._backend.disconnect()
        shutil.rmtree(self.spill, ignore_errors=True)

    def demand(self, needed_mb: int, what: str) -> None:
        if self._memory_mb < needed_mb:
            raise EngineError(
                f"{what} needs {needed_mb:,} MB for its joins, and {self._memory_mb:,} are left "
                f"for them: give the job mem_mb={job_mb(needed_mb)} or more "
                "(--set-resources, or the profile)"
            )

    def files(self, paths: Sequence[str | Path]) -> Table:
        return self._backend.read_parquet(
            [str(path) for path in paths], table_name=next(self._names)
        )

    def table(self, frame: pl.DataFrame) -> Table:
        rows = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        name, connection = self._name(), self._backend.con
        # `create_table` takes five times as long, and there are thousands of small tables
        with self._explained():
            connection.register(GIVEN, rows)
            connection.execute(f"CREATE TEMP TABLE {name} AS FROM {GIVEN}")
            connection.unregister(GIVEN)
        return DatabaseTable(name, ibis.schema(rows.schema), self._backend, KEPT).to_expr()

    def _keep(self, rows: Table, name: str) -> Table:
        with self._explained():
            return self._backend.create_table(name, rows, temp=True)

    def _frame(self, rows: Table) -> pl.DataFrame:
        with self._explained():
            return pl.DataFrame(pl.from_arrow(self._backend.to_pyarrow(rows)))

    def parts(self, rows: Table, order: Sequence[str]) -> Iterator[pl.DataFrame]:
        # without this, sorted batches of several threads may come in the wrong order
        self._backend.settings["preserve_insertion_order"] = True
        with self._explained():
            # Ibis 12.0.0 requests batches by a name that DuckDB 2.0.0 has removed
            sorted_rows = self._backend.con.sql(ibis.to_sql(rows.order_by(list(order))))
            for batch in sorted_rows.to_arrow_reader(PART):
                yield pl.DataFrame(pl.from_arrow(batch))
        self._backend.settings["preserve_insertion_order"] = False

    def _forget(self, name: str) -> None:
        self._backend.drop_table(name, force=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Add the setting that would help to DuckDB's errors on memory and disk."""
        try:
            yield
        except duckdb.OutOfMemoryException as error:
            raise EngineError(
                f"the joins need more than {self._memory_mb:,} MB and what could be spilled to "
                f"{self.spill}: raise the job's mem_mb (--set-resources, or the profile), or give "
                f"its tmpdir a disk with more room ({error})"
            ) from error
        except duckdb.IOException as error:
            if self.spill.name not in str(error):
                raise EngineError(f"the joins could not read their input: {error}") from error
            raise EngineError(
                f"the joins could not write to {self.spill}: give the job's tmpdir a disk with "
                f"more room, or raise its mem_mb; the joins had {self._memory_mb:,} MB ({error})"
            ) from error
