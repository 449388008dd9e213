"""The engine that the configuration names, within what the job was given."""

from kgprobe.knowledge.engine import PROCESS_MB, Engine
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.knowledge.engine_spark import Spark
from kgprobe.settings import Joins


def opened(joins: Joins, mem_mb: int, threads: int = 1) -> Engine:
    """The engine of `joins` for a job that may take `mem_mb`; DuckDB runs on `threads`.

    Raises EngineError where that is too little, or where no master of Spark answers.
    """
    memory = mem_mb - PROCESS_MB
    if joins.engine == "duckdb":
        return DuckDB(memory, threads)
    return Spark(joins.master, memory, joins.folder)
