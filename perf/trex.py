"""T-REx ingestion against bare JSON parsing, and the memory of a whole dump.

    python -m perf.trex [files]

Rows: ingestion of one file (parse, extract, deduplicate, write) per byte against `orjson.loads` of
the same bytes, one thread; peak memory of ingesting the files one after the other.
"""

import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import orjson

from kgprobe import schema
from kgprobe.sources.dumps import trex
from perf.generate.trex import write_dump

REPEATS = 5


def write_shard(shard: trex.FileTables, folder: Path) -> None:
    """The tables of one file, as the rule writes them."""
    for name, contract in trex.TABLES.items():
        schema.write(shard[name], contract, folder / f"{name}.parquet")


def seconds(action) -> float:  # type: ignore[no-untyped-def]
    """CPU seconds of one call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def main(files: int) -> list[dict[str, object]]:
    """Measure and return the rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_dump(folder / "dump", files)
        data = paths[0].read_bytes()
        ours, bare = [], []
        for _ in range(REPEATS):
            bare.append(seconds(lambda: orjson.loads(data)))
            ours.append(seconds(lambda: write_shard(trex.ingest(data, "f"), folder / "shard")))
        total = sum(p.stat().st_size for p in paths)
        for path in paths:
            write_shard(trex.ingest(path.read_bytes(), path.name), folder / path.stem)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        merged = trex.merge(sorted(folder.glob("re-nlg*/triples.parquet")), trex.TRIPLES)
    ratio = statistics.median(b / o for b, o in zip(bare, ours, strict=True))
    megabytes = len(data) / 1e6
    return [
        {
            "name": "T-REx ingestion, one file",
            "ours": round(megabytes / statistics.median(ours), 1),
            "peer": round(megabytes / statistics.median(bare), 1),
            "unit": "MB per CPU second; peer: bare orjson.loads",
            "ratio": round(ratio, 3),
            "target": 0.5,
        },
        {
            "name": f"T-REx ingestion, {total / 1e9:.2f} GB in {files} files, "
            f"{merged.height} distinct triples",
            "ours": round(peak),
            "peer": 1536,
            "unit": "MiB peak memory; peer: the bound of the issue",
            "ratio": round(1536 / peak, 2),
            "target": 1.0,
        },
    ]


if __name__ == "__main__":
    rows = main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
    out = Path("results/perf/trex.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))
    print(json.dumps(rows, indent=1))
