from pathlib import Path

from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.job import job
from kgprobe.tables.answers import questions
from kgprobe.tables.exports import formats, origins

with job(snakemake) as run:
    folder = Path(run.input.questions).parent
    sets, sources = Sets(*questions(folder)), origins.of(folder)
    name, form = run.wildcards.benchmark, run.wildcards.form
    formats.write(form, name, sets, sources, Path(run.output.folder))
