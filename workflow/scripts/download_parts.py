from pathlib import Path

from kgprobe.http import user_agent
from kgprobe.job import job
from kgprobe.sources.dumps.download import download, unpack_as

with job(snakemake) as run:
    folder = Path(run.params.folder)
    archive = folder / f"{Path(str(snakemake.log[0])).stem}.zip"
    agent = user_agent(run.params.url, run.params.contact)
    run.note(sha256=download(run.params.url, archive, agent=agent))
    for made in unpack_as(archive, folder, dict(run.params.parts)):
        run.note(**{made.name: str(made)})
