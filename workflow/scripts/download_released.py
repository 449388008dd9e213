from pathlib import Path

from kgprobe.http import user_agent
from kgprobe.job import job
from kgprobe.sources.dumps.download import download, unpack

with job(snakemake) as run:
    folder = Path(run.output[0]).parent
    archive = folder / "archive.zip"
    agent = user_agent(run.params.url, run.params.contact)
    run.note(sha256=download(run.params.url, archive, agent=agent))
    unpack(archive, folder, run.params.parts)
