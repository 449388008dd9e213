"""The engine that the configuration names, within what the job was given."""

from kgprobe.knowledge.engine import Engine, joins_mb
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.knowledge.engine_spark import Spark
from kgprobe.settings.knowledge import Joins


def open_engine(joins: Joins, mem_mb: int, threads: int) -> Engine:
    """The engine of `joins` for a job that may take `mem_mb`; DuckDB runs on `threads`.

    Raises EngineError where that is too little, or where no master of Spark answers.
    """
    memory = joins_mb(mem_mb)
    if joins.engine == "duckdb":
        return DuckDB(memory, threads)
    return Spark(joins.master, memory, joins.folder)
