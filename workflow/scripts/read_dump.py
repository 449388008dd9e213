from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.sources.dumps import facts
from kgprobe.sources.sparql.snapshots import snapshot_name

with job(snakemake) as run:
    chosen, dump = run.params.settings, Path(run.input.dump)
    rows = read_table(run.input.relations)
    named = {row["relation"] for row in rows} | {row["lift"] for row in rows if row["lift"]}
    snapshot = snapshot_name(chosen["access"], chosen["snapshot"] or "", [str(dump)])
    # parts that other code has read are read again
    folder = Path(run.params.data) / run.wildcards.dump / snapshot / run.params.code
    wanted, languages = chosen["relations"] or named, run.params.languages
    found = facts.read(dump, chosen["form"], wanted, folder, languages)
    schema.write(found, schema.STATEMENTS, run.output.facts, run.provenance())
