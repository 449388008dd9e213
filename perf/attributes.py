"""From generated graphs of 1 and 11 million statements to all nine attributes.

    python -m perf.attributes [millions[:runs] ...]     100, too, which takes half an hour

Every run is a fresh process in a control group of its own, whose limit of memory the kernel holds
(it counts cached files, too, which it gives up first): FACTS of a parquet file are encoded and
written, then each benchmark is built with the paper's thresholds, labels required, and its full
table of sensitivity. Planted patterns must come out in their exact numbers.
Rows: wall and CPU seconds, peak memory and bytes written against the targets, and the growth
between the sizes. Besides results/perf/attributes.json this writes attributes_steps.tsv;
`python docs/pictures.py` draws docs/sizes.svg of the rows in resources/measured/bench.tsv.
"""

import contextlib
import importlib
import json
import math
import os
import resource
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from kgprobe import schema
from kgprobe.benchmarks.attributes import sensitivity
from kgprobe.benchmarks.attributes.definition import settings_of
from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.knowledge import graph
from kgprobe.knowledge.engine import joins_mb
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.settings.benchmarks import ATTRIBUTES
from perf import _limit
from perf.generate.graph import Planted, write_facts

#: million statements between items that Wikidata has, about, which is what a full dump brings
WIKIDATA = 1500


@dataclass(frozen=True)
class Size:
    """Number of runs of a size, and their limits: MB that the kernel grants, and wall seconds."""

    runs: int
    limit_mb: int
    seconds: int | None = None


#: by millions of statements
SIZES = {1: Size(3, 1500), 11: Size(1, 1500, 180), 100: Size(1, 4000, 1800)}
RESULTS = Path("results/perf")


def one(path: str, limit_mb: int, built: str = "") -> dict[str, Any]:
    """Return wall and CPU seconds of every step, rows, and the peak memory of this process."""
    memory = joins_mb(limit_mb)
    steps: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def step(name: str) -> Any:
        wall, cpu, disk = time.perf_counter(), time.process_time(), count_written_bytes()
        row: dict[str, Any] = {"step": name}
        yield row
        row["wall"] = round(time.perf_counter() - wall, 2)
        row["cpu"] = round(time.process_time() - cpu, 2)
        row["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 10**6)
        row["written_mb"] = (count_written_bytes() - disk) >> 20
        steps.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)

    config = yaml.safe_load(Path("config/config.yaml").read_text())["attributes"]
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: f"{folder}/{name}.parquet" for name in graph.TABLES}
        with step("encode") as row, DuckDB(memory, os.cpu_count() or 1) as engine:
            made = graph.encode(engine, engine.files([path]))
            counts = dict(made.counts)
            graph.write(made, paths, {})
            row["in"], row["out"] = counts["statements"], counts["edges"]
        # as in the workflow: a job for every attribute
        for name in ATTRIBUTES if not built else [built]:
            with step(name) as row, DuckDB(memory, os.cpu_count() or 1) as engine:
                made = graph.read(engine, *(paths[table] for table in graph.TABLES[:3]))
                module = importlib.import_module(f"kgprobe.benchmarks.attributes.{name}")
                chosen = settings_of(config, name)
                found = module.build(made, chosen)
                examples = f"{folder}/examples.parquet"
                schema.write_sorted(found.parts(), EXAMPLES, examples)
                row["in"] = counts["edges"]
                row["out"] = pl.scan_parquet(examples).select(pl.len()).collect().item()
                row["items"] = found.items.height
                row["candidates"] = int(found.patterns["candidates"].sum())
                check(name, found.patterns)
                row["alternatives"] = sensitivity.table(module, made, chosen, True).height
        return {"steps": steps, "counts": counts}


def count_written_bytes() -> int:
    """Return the bytes that this process has written to disk so far."""
    told = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(told["write_bytes"])


def check(name: str, patterns: pl.DataFrame) -> None:
    """End the run unless the planted patterns were found in their exact numbers."""
    known = Planted()
    expected = {
        "symmetry": {"P26": known.pairs},
        "bidirectional": {"P22~P40": known.inverses},
        "hierarchy": {"P279": known.chains},
        "composite": {"P7>P8=P9": known.triangles},
        "ambiguous": {"P19": known.names},
        "bias": {"P21": known.obscure},
    }
    found = dict(patterns.select("pattern", "candidates").rows())
    for pattern, n in expected.get(name, {}).items():
        if found.get(pattern) != n:
            raise SystemExit(f"{name}: {found.get(pattern)} candidates of {pattern}, planted {n}")
    if not found:
        raise SystemExit(f"{name}: no example")


def measured(millions: int, size: Size, folder: Path) -> list[dict[str, Any]]:
    """The runs of one size."""
    path = folder / f"{millions}.parquet"
    write_facts(path, millions * 1_000_000)
    runs = []
    for _ in range(size.runs):
        command = [sys.executable, "-m", "perf.attributes", "--one", str(path), str(size.limit_mb)]
        done = _limit.run(command, size.limit_mb)
        if done.returncode:
            told = done.stderr[-2000:] or done.stdout[-2000:]
            raise SystemExit(f"{millions} M: exit {done.returncode}: {told}")
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(millions, "M:", total(runs[-1]), "s,", peak(runs[-1]), "MB", flush=True)
    path.unlink()
    return runs


def total(run: dict[str, Any]) -> float:
    """Wall seconds of all steps."""
    return round(sum(step["wall"] for step in run["steps"]), 1)


def processor(run: dict[str, Any]) -> float:
    """CPU seconds of all steps."""
    return round(sum(step["cpu"] for step in run["steps"]), 1)


def disk(run: dict[str, Any]) -> int:
    """MB written, spilled ones included."""
    return sum(step["written_mb"] for step in run["steps"])


def peak(run: dict[str, Any]) -> int:
    """Peak memory in MB."""
    return max(step["peak_mb"] for step in run["steps"])


def main(asked: dict[int, Size]) -> list[dict[str, object]]:
    """Measure, write the table, and return the rows."""
    results: dict[int, list[dict[str, Any]]] = {}
    sizes = sorted(asked)
    with tempfile.TemporaryDirectory() as folder:
        for millions in sizes:
            results[millions] = measured(millions, asked[millions], Path(folder))
    write_steps(results)
    rows: list[dict[str, object]] = []
    for millions, runs in results.items():
        walls, size = sorted(total(run) for run in runs), asked[millions]
        name = f"nine attributes from {millions} M generated statements"
        note = f"{len(runs)} runs, {walls[0]} to {walls[-1]} s, load {os.getloadavg()[0]:.1f}"
        seconds = f"wall seconds on {os.cpu_count()} cores"
        most = f"<= {size.seconds}" if size.seconds else ""
        rows += [
            row(f"{name} ({note})", statistics.median(walls), seconds, most),
            row(f"{name}, CPU", statistics.median(map(processor, runs)), "CPU seconds"),
            row(
                f"{name}, peak memory",
                max(map(peak, runs)),
                f"MB of one fresh process; the kernel grants {size.limit_mb:,}",
                f"<= {size.limit_mb}",
            ),
            row(f"{name}, written", max(map(disk, runs)), "MB, what was spilled included"),
        ]
    medians = {m: statistics.median(total(run) for run in runs) for m, runs in results.items()}
    for small, large in pairwise(sizes):
        grown = round(medians[large] / medians[small] / (large / small), 2)
        unit = f"over that of the number of statements, {large / small:.2f}"
        name = f"growth of time from {small} M to {large} M statements"
        rows.append(row(name, grown, unit, "<= 1.5"))
    # the smallest fits into memory, so that its power law says nothing of what is spilled
    if len(sizes) > 1 and sorted(sizes)[-2] > 1:
        rows += projected(results)
    return rows


def row(name: str, ours: float, unit: str, target: str = "") -> dict[str, object]:
    return {"name": name, "ours": ours, "peer": "", "unit": unit, "ratio": "", "target": target}


def projected(results: dict[int, list[dict[str, Any]]]) -> list[dict[str, object]]:
    """Wall hours and GB written for WIKIDATA, by the power law through the two largest sizes."""
    small, large = sorted(results)[-2:]
    found = []
    for value, unit, scale in ((total, "wall hours", 3600), (disk, "GB written", 1000)):
        at = [statistics.median(value(run) for run in results[m]) for m in (small, large)]
        power = math.log(at[1] / max(1, at[0])) / math.log(large / small)
        name = f"projection from {small} M and {large} M to {WIKIDATA:,} M statements, {unit}"
        ours = round(at[1] * (WIKIDATA / large) ** power / scale, 1)
        found.append(row(name, ours, f"{at[1]:,} x {WIKIDATA / large:g}^{power:.2f} / {scale:,}"))
    return found


def write_steps(results: dict[int, list[dict[str, Any]]]) -> None:
    """The steps of every run as a table."""
    columns = ("step", "wall", "cpu", "peak_mb", "written_mb", "in", "candidates", "out")
    lines = ["\t".join(("millions", "run", *columns))]
    for millions, runs in results.items():
        for number, run in enumerate(runs):
            for step in run["steps"]:
                cells = [millions, number, *(step.get(c, "") for c in columns)]
                lines.append("\t".join(map(str, cells)))
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "attributes_steps.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])))
        raise SystemExit(0)
    chosen = (arg.partition(":")[::2] for arg in sys.argv[1:])
    told = {int(m): replace(SIZES[int(m)], runs=int(runs or 1)) for m, runs in chosen}
    measured_rows = main(told or {millions: SIZES[millions] for millions in (1, 11)})
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "attributes.json").write_text(json.dumps(measured_rows, indent=1))
    print(json.dumps(measured_rows, indent=1))
