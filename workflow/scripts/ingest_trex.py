from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, versions
from kgprobe.sources import trex

with job(snakemake) as run:
    source, name = Path(run.input.dump), f"{run.wildcards.member}.json"
    shard = trex.ingest(trex.read_member(source, name), name)
    trex.require_few_problems(shard, run.params.max_bad)
    provenance = {"file": name, "versions": versions()}
    for name, contract in trex.TABLES.items():
        schema.write(getattr(shard, name), contract, run.output[name], provenance)
