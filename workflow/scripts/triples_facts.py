import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.knowledge import facts

with job(snakemake) as run:
    triples = pl.read_parquet(run.input.triples, columns=["s", "p", "o"])
    found = facts.of_triples(triples, facts.read_labels(run.input.labels))
    schema.write(found, schema.FACTS, run.output.facts, run.provenance())
