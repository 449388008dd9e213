from pathlib import Path

from kgprobe.http import user_agent
from kgprobe.job import job
from kgprobe.sources.dumps.download import download

with job(snakemake) as run:
    found = download(
        run.params.url,
        Path(run.output.file),
        agent=user_agent(run.params.url, run.params.contact),
        sha256=run.params.get("sha256"),
    )
    run.note(sha256=found)
