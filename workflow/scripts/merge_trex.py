from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.sources.dumps import trex


def shards(table: str) -> list[Path]:
    """Return the shards of a table in the order of the dump."""
    paths = [path for part in run.input.shards for path in Path(part).glob(f"*/{table}.parquet")]
    return sorted(paths, key=lambda path: int(path.parent.name.split("_")[1].split("-")[0]))


with job(snakemake) as run:
    schema.write(
        trex.merge(shards("triples"), trex.TRIPLES),
        trex.TRIPLES,
        run.output.triples,
        run.provenance(),
    )
    mentions = trex.merge(shards("mentions"), trex.MENTIONS)
    labels = trex.labels(mentions, pl.read_parquet(shards("documents")))
    schema.write(labels, trex.LABELS, run.output.labels, run.provenance())
    problems = pl.read_parquet(shards("problems"))
    schema.write(problems, trex.PROBLEMS, run.output.problems, run.provenance())
