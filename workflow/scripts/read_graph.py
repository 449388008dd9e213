from kgprobe import schema
from kgprobe.job import job
from kgprobe.settings.sources import OwnGraph
from kgprobe.settings.types import typed
from kgprobe.sources.graphs import read

with job(snakemake) as run:
    section = typed(OwnGraph, run.params.settings)
    tables = read.read(run.wildcards.graph, section, run.params.languages)
    for name, contract in read.CONTRACTS.items():
        schema.write(tables[name], contract, run.output[name], run.provenance())
