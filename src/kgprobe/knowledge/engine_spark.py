"""Joins on many machines: Spark, by the URL of its master.

Input files, and the folder for sorted rows on their way to the driver, are on storage that the
driver and all workers see under the same path. Workers import kgprobe to compute sampling keys.
Data of a lost worker are recomputed by the others.
"""

import contextlib
import logging
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.operations as ops
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from ibis.expr.types import Table

from kgprobe.knowledge.engine import PART, Engine, EngineError

#: shuffle tasks per core of the cluster; adaptive execution merges small ones
TASKS_PER_CORE = 4


class Spark(Engine):
    """One Spark application.

    `master`: `spark://host:port`, `yarn`, or `local[2]`; `memory_mb`: of each executor; `folder`:
    shared storage, for sorted rows on their way to the driver. Raises EngineError if pyspark is
    not installed or no master responds.
    """

    def __init__(self, master: str, memory_mb: int, folder: str | Path) -> None:
        super().__init__()
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise EngineError(
                "joins.engine is spark, and pyspark is not installed: pip install 'kgprobe[spark]'"
            ) from error
        _answered(master)
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix=".kgprobe-joins-", dir=folder)).resolve()
        settings = {
            "spark.executor.memory": f"{memory_mb}m",
            "spark.pyspark.python": sys.executable,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.driver.maxResultSize": "0",
        }
        # errors are reported once, by this class
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        builder = SparkSession.builder.master(master).appName("kgprobe")
        for name, value in settings.items():
            builder = builder.config(name, value)
        with self._explained(f"no Spark session at {master}"):
            self._session = builder.getOrCreate()
            cores = self._session.sparkContext.defaultParallelism
        self._session.conf.set("spark.sql.shuffle.partitions", str(TASKS_PER_CORE * cores))
        self._backend = ibis.pyspark.connect(self._session)
        self._held: dict[str, Any] = {}
        self._known: set[str] = set()

    def close(self) -> None:
        self._session.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def demand(self, needed_mb: int, what: str) -> None:
        """Do nothing: other executors have more memory, or Spark spills."""

    def files(self, paths: Sequence[str | Path]) -> Table:
        frame = self._session.read.parquet(*(Path(path).resolve().as_uri() for path in paths))
        return self._as_table(frame, next(self._names))

    def table(self, frame: pl.DataFrame) -> Table:
        # Spark has no unsigned numbers
        signed = frame.with_columns(pl.selectors.unsigned_integer().cast(pl.Int64))
        rows = signed.to_arrow(compat_level=pl.CompatLevel.oldest())
        name = self._name()
        self._held[name] = self._session.createDataFrame(rows).persist()
        return self._as_table(self._held[name], name)

    def _keep(self, rows: Table, name: str) -> Table:
        with self._explained("Spark ended the joins"):
            self._held[name] = self._query(rows).persist()
            # compute now, as DuckDB does: its inputs may be dropped
            self._held[name].count()
        return self._as_table(self._held[name], name)

    def _frame(self, rows: Table) -> pl.DataFrame:
        with self._explained("Spark ended the joins"):
            return pl.DataFrame(pl.from_arrow(self._query(rows).toArrow()))

    def parts(self, rows: Table, order: Sequence[str]) -> Iterator[pl.DataFrame]:
        place = self._folder / next(self._names)
        with self._explained("Spark ended the joins"):
            self._query(rows).orderBy(*order).write.parquet(place.as_uri())
        # range partitioning: the names of the files are in sort order
        for path in sorted(place.glob("part-*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(PART):
                yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch])))
        shutil.rmtree(place)

    def _forget(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            held.unpersist()
            self._session.catalog.dropTempView(name)

    def _as_table(self, rows: Any, name: str) -> Table:
        rows.createOrReplaceTempView(name)
        return self._backend.table(name)

    def _query(self, rows: Table) -> Any:
        for node in rows.op().find(ops.ScalarUDF):
            name = self._backend.compiler.__sql_name__(node)
            self._register(name, node.__func__, node.dtype)
        return self._session.sql(ibis.to_sql(rows, dialect="pyspark"))

    def _register(self, name: str, function: Callable[..., pa.Array], dtype: Any) -> None:
        """Register a function of arrow columns; Ibis 12.0.0 would pass it one value at a time."""
        if name in self._known:
            return
        import pandas as pd
        from pyspark.sql.functions import pandas_udf

        # pyspark reads these type annotations
        def applied(*columns: pd.Series) -> pd.Series:
            return function(*(pa.Array.from_pandas(column) for column in columns)).to_pandas()

        kind = {"int64": "bigint", "string": "string"}[str(dtype)]
        self._session.udf.register(name, pandas_udf(applied, kind))
        self._known.add(name)

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except (Py4JError, PySparkException) as error:
            raise EngineError(f"{what} ({str(error).strip().splitlines()[0]})") from error


def _answered(master: str) -> None:
    """Raise EngineError if no standalone master listens; Spark would try for a minute."""
    if not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        with contextlib.suppress(OSError, ValueError):
            socket.create_connection((host, int(port)), timeout=5).close()
            return
    raise EngineError(f"no Spark master answers at {master}: is joins.master right, does it run?")
