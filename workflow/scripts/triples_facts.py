import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.knowledge import triples_facts

with job(snakemake) as run:
    triples = pl.read_parquet(run.input.triples, columns=["s", "p", "o"])
    facts = triples_facts.build(triples, triples_facts.read_labels(run.input.labels))
    schema.write(facts, schema.FACTS, run.output.facts, run.provenance())
