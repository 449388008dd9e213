from dataclasses import replace

from kgprobe import schema
from kgprobe.job import job
from kgprobe.knowledge import ontology
from kgprobe.sources.graphs import read

CONTRACTS = {**ontology.TABLES, "steps": ontology.STEPS}

with job(snakemake) as run:
    built = ontology.build_own(
        **{name: schema.read(path, read.CONTRACTS[name]) for name, path in run.input.items()},
        per_class=run.params.per_class,
        most=run.params.properties,
        seed=run.params.seed,
    )
    for name, contract in CONTRACTS.items():
        # a graph may have no classes, or no hierarchy of relations
        contract = replace(contract, may_be_empty=True)
        schema.write(getattr(built, name), contract, run.output[name], run.provenance())
