from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.tables.report import manifest

with job(snakemake) as run, atomic(run.output.manifest) as temporary:
    table = manifest.rows(manifest.records(Path(run.params.logs)), Path())
    temporary.write_text(manifest.render(table), encoding="utf-8")
