"""The nine attributes on a Spark cluster and on DuckDB: equal files, and the cost of each.

    python -m perf.spark [thousands of statements]

A standalone master and two workers of one core each, on loopback: the cost of a cluster if one
machine is enough. Ends with an error if a file differs.
"""

import importlib
import json
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import yaml

from kgprobe import schema
from kgprobe.benchmarks.attributes import frames, sensitivity
from kgprobe.benchmarks.attributes.definition import settings_of
from kgprobe.knowledge import graph
from kgprobe.knowledge.engine import Engine
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.knowledge.engine_spark import Spark
from kgprobe.settings.benchmarks import ATTRIBUTES
from perf.generate.graph import write_facts
from perf.run import RESULTS
from tests.contract import spark

MEMORY = 1500


def build(engine: Engine, facts: Path, folder: Path) -> dict[str, float]:
    """Write the graph and all files of the nine attributes; return the seconds of every step."""
    config = yaml.safe_load(Path("config/config.yaml").read_text())["attributes"]
    folder.mkdir()
    paths, took = {name: str(folder / f"{name}.parquet") for name in graph.TABLES}, {}
    started = time.perf_counter()
    graph.write(graph.encode(engine, engine.files([facts])), paths, {})
    took["graph"] = time.perf_counter() - started
    for name in ATTRIBUTES:
        started = time.perf_counter()
        with engine.temporary():
            made = graph.read(engine, *(paths[table] for table in graph.TABLES[:3]))
            module = importlib.import_module(f"kgprobe.benchmarks.attributes.{name}")
            settings = settings_of(config, name)
            built = module.build(made, settings)
            tables = {
                "examples": frames.EXAMPLES,
                "items": schema.ITEMS,
                "candidates": schema.CANDIDATES,
            }
            for frame, contract in (tables | frames.REPORTS).items():
                schema.write(getattr(built, frame), contract, folder / f"{name}.{frame}", {})
            tried = sensitivity.table(module, made, settings, False)
            schema.write(tried, frames.SENSITIVITY, folder / f"{name}.sensitivity", {})
        took[name] = time.perf_counter() - started
        print(f"{type(engine).__name__}, {name}: {took[name]:.1f} s", flush=True)
    return took


def main(thousands: int) -> list[dict[str, object]]:
    """Build on both, compare, and return the rows."""
    if find_spec("pyspark") is None:
        raise SystemExit("pyspark is not installed: make setup EXTRAS=spark")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_facts(folder / "facts.parquet", thousands * 1000)
        with DuckDB(MEMORY, os.cpu_count() or 1) as engine:
            ours = build(engine, folder / "facts.parquet", folder / "duckdb")
        with (
            spark.serving(folder) as cluster,
            Spark(cluster.master, MEMORY, folder / "shared") as engine,
        ):
            theirs = build(engine, folder / "facts.parquet", folder / "spark")
        files = sorted(path.name for path in (folder / "duckdb").iterdir())
        sides = [
            [(folder / side / file).read_bytes() for file in files] for side in ("duckdb", "spark")
        ]
        different = [file for file, one, other in zip(files, *sides, strict=True) if one != other]
    if different:
        raise SystemExit(f"not the same on Spark: {', '.join(different)}")
    return [
        {
            "name": f"nine attributes of {thousands:,} thousand statements on Spark, "
            f"{len(files)} files the same as DuckDB's",
            "ours": round(sum(theirs.values()), 1),
            "peer": round(sum(ours.values()), 1),
            "unit": "wall seconds; two workers of one core on this machine; peer: DuckDB",
            "ratio": round(sum(ours.values()) / sum(theirs.values()), 3),
            "target": "",
        }
    ]


if __name__ == "__main__":
    found = main(int(sys.argv[1]) if sys.argv[1:] else 1000)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "spark.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))
