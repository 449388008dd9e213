from pathlib import Path

from kgprobe.http import user_agent
from kgprobe.job import job
from kgprobe.sources.dumps.download import Bounds, download, link, place

with job(snakemake) as run:
    name, url, file = run.params.name, run.params.url, Path(run.output.file)
    sources = run.config["sources"]
    section = sources["trex"] if name == "trex" else sources["dumps"][name]
    bounds = Bounds.of(sources["downloads"], section["max_bytes"])
    kept, agent = (
        place(Path(run.config["data"]), url, file.name),
        user_agent(url, run.config["contact"]),
    )
    run.note(sha256=download(url, kept, agent=agent, sums=section["sums"], bounds=bounds))
    link(kept, file)
