from pathlib import Path

from kgprobe.job import job
from kgprobe.sources.download import agent_of, download
from kgprobe.sources.released_archive import unpack_as

with job(snakemake) as run:
    folder = Path(run.params.folder)
    archive = folder / f"{Path(str(snakemake.log[0])).stem}.zip"
    run.note(sha256=download(run.params.url, archive, agent=agent_of(run.params.contact)))
    for made in unpack_as(archive, folder, dict(run.params.parts)):
        run.note(**{made.name: str(made)})
