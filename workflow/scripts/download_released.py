from pathlib import Path

from kgprobe.job import job
from kgprobe.sources.download import agent_of, download
from kgprobe.sources.released_archive import unpack

with job(snakemake) as run:
    folder = Path(run.output[0]).parent
    archive = folder / "archive.zip"
    run.note(sha256=download(run.params.url, archive, agent=agent_of(run.params.contact)))
    unpack(archive, folder, run.params.parts)
