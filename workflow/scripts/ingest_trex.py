from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, progress, versions
from kgprobe.sources.dumps import trex

with job(snakemake) as run:
    first = Path(run.input.dump[0])
    source = first.parent if first.suffix == ".json" else first
    for member in progress(run.params.members, desc=f"part {run.wildcards.part}", unit="file"):
        name = f"{member}.json"
        shard = trex.ingest(trex.read_member(source, name), name)
        trex.require_few_problems(shard, run.params.max_bad)
        provenance = {"file": name, "versions": versions()}
        folder = Path(run.output.shards) / member
        for table, contract in trex.TABLES.items():
            schema.write(shard[table], contract, folder / f"{table}.parquet", provenance)
