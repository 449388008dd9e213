from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import released as ontoprobe_released
from kgprobe.job import job
from kgprobe.knowledge import ontology

with job(snakemake) as run:
    dbpedia = {Path(p).stem: pl.read_parquet(p) for p in run.input.dbpedia}
    wikidata = {Path(p).stem: pl.read_parquet(p) for p in run.input.wikidata}
    statements = schema.read(run.input.statements, schema.STATEMENTS)
    released = run.input.get("released")
    named = ontoprobe_released.properties(Path(released[0]))["property"] if released else None
    built = ontology.build(
        dbpedia,
        wikidata,
        statements,
        per_class=run.params.per_class,
        properties=run.params.properties,
        seed=run.params.seed,
        named=None if named is None else named.drop_nulls().to_list(),
    )
    for name, contract in ontology.CONTRACTS.items():
        schema.write(getattr(built, name), contract, run.output[name], run.provenance())
