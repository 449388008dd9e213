from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.sources import dump_facts
from kgprobe.sources.snapshots import snapshot_name

with job(snakemake) as run:
    chosen, dump = run.params.settings, Path(run.input.dump)
    rows = read_table(run.input.relations)
    named = {row["relation"] for row in rows} | {row["lift"] for row in rows if row["lift"]}
    snapshot = snapshot_name(chosen["access"], chosen.get("snapshot", ""), [str(dump)])
    # parts that other code has read are read again
    folder = Path(run.params.data) / run.wildcards.dump / snapshot / run.params.code
    found = dump_facts.read(dump, chosen["form"], chosen.get("relations") or named, folder)
    schema.write(found, schema.STATEMENTS, run.output.facts, run.provenance())
