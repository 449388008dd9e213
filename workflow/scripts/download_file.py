from pathlib import Path

from kgprobe.job import job
from kgprobe.sources.download import agent_of, download

with job(snakemake) as run:
    found = download(
        run.params.url,
        Path(run.output.file),
        agent=agent_of(run.params.contact),
        sha256=run.params.get("sha256"),
    )
    run.note(sha256=found)
