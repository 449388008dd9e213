from pathlib import Path

from kgprobe.http import user_agent
from kgprobe.job import job
from kgprobe.sources.dumps.download import Bounds, download

with job(snakemake) as run:
    name, url = run.params.name, run.params.url
    sources = run.config["sources"]
    section = sources["trex"] if name == "trex" else sources["dumps"][name]
    found = download(
        url,
        Path(run.output.file),
        agent=user_agent(url, run.config["contact"]),
        sums=section["sums"],
        bounds=Bounds.of(sources["downloads"], section["max_bytes"]),
    )
    run.note(sha256=found)
