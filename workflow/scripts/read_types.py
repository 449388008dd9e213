from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.sources.dumps import facts
from kgprobe.sources.sparql.snapshots import snapshot_name

with job(snakemake) as run:
    chosen, files = run.params.settings, [Path(path) for path in run.input.dump]
    name = snapshot_name(chosen["access"], chosen["snapshot"] or "", [str(file) for file in files])
    folder = Path(run.params.data) / "types" / name / run.params.code
    classes = pl.read_parquet(run.input.classes)["class"].to_list()
    types, in_part, unread = facts.read_types(
        files, classes, run.params.most, folder, run.params.languages, threads=run.threads
    )
    schema.write(unread, facts.UNREAD, run.output.unread, run.provenance())
    provenance = {**run.provenance(), "in_part": in_part}
    schema.write(types, schema.TYPES, run.output.types, provenance)
