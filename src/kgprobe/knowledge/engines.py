"""Open the join engine that the configuration names, within the job's memory and threads."""

from kgprobe.knowledge.engine import Engine, joins_mb
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.knowledge.engine_spark import Spark
from kgprobe.settings.knowledge import Joins


def open_engine(joins: Joins, mem_mb: int, threads: int) -> Engine:
    """Open the engine of `joins` for a job with `mem_mb` of memory; DuckDB uses `threads`.

    Raises EngineError if the memory is too small, or if no Spark master responds.
    """
    memory = joins_mb(mem_mb)
    if joins.engine == "duckdb":
        return DuckDB(memory, threads)
    return Spark(joins.master, memory, joins.folder)
