from pathlib import Path

from kgprobe import schema
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.sources.dumps import facts
from kgprobe.sources.sparql.snapshots import snapshot_name

with job(snakemake) as run:
    chosen, files = run.params.settings, [Path(path) for path in run.input.dump]
    rows = read_table(run.input.relations)
    named = {row["relation"] for row in rows} | {row["ancestor"] for row in rows if row["ancestor"]}
    name = snapshot_name(chosen["access"], chosen["snapshot"] or "", [str(file) for file in files])
    # the folder depends on the code, so that shards read by other code are read again
    folder = Path(run.params.data) / run.wildcards.dump / name / run.params.code
    wanted, languages = chosen["relations"] or named, run.params.languages
    dump = facts.read(files, chosen["form"], wanted, folder, languages, threads=run.threads)
    facts.require_statements(dump.statements, files[0], wanted)
    provenance = run.provenance()
    schema.write(dump.statements, schema.STATEMENTS, run.output.facts, provenance)
    schema.write(dump.coverage, schema.COVERAGE, run.output.coverage, provenance)
    schema.write(dump.unread, facts.UNREAD, run.output.unread, provenance)
    with schema.atomic(run.output.aliases) as temporary:
        dump.aliases.sink_parquet(temporary)
    with schema.atomic(run.output.properties) as temporary:
        temporary.write_text(dump.properties, encoding="utf-8")
