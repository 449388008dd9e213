from pathlib import Path

from kgprobe.job import job
from kgprobe.tables.exports import crate

with job(snakemake) as run:
    crate.write(Path(run.input.manifest).parent, Path(run.output.folder))
