from pathlib import Path

from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.job import job
from kgprobe.tables.answers import questions
from kgprobe.tables.exports import formats, origins
from kgprobe.tables.study import relations_of

with job(snakemake) as run:
    folder = Path(run.input.questions).parent
    kind = run.params.kind
    frames = formats.read(folder, kind, lambda: BearFrames(*questions(folder)))
    name = run.wildcards.benchmark + (f"_{kind}" if kind != formats.KINDS[0] else "")
    form = run.wildcards.form
    formats.write(
        form, name, frames, formats.sources(form, folder), Path(run.output.folder),
        relations_of(folder / "relations.parquet"), origins.paper_of(folder),
    )  # fmt: skip
