from pathlib import Path

from kgprobe.job import job
from kgprobe.sources.bear_archive import unpack
from kgprobe.sources.download import agent_of, download

with job(snakemake) as run:
    folder = Path(run.output.small).parent
    archive = folder / "archive.zip"
    run.note(sha256=download(run.params.url, archive, agent=agent_of(run.params.contact)))
    unpack(archive, folder)
