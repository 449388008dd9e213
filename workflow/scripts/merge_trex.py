from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.sources import trex

with job(snakemake) as run:
    schema.write(
        trex.merge_triples([Path(p) for p in run.input.triples]),
        trex.TRIPLES,
        run.output.triples,
        run.provenance(),
    )
    mentions = trex.merge_mentions([Path(p) for p in run.input.mentions])
    labels = trex.labels(mentions, pl.read_parquet(run.input.documents))
    schema.write(labels, trex.LABELS, run.output.labels, run.provenance())
    problems = pl.read_parquet(run.input.problems)
    schema.write(problems, trex.PROBLEMS, run.output.problems, run.provenance())
