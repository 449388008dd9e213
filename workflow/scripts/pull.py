from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources import access
from kgprobe.sources.sparql import pull

with job(snakemake) as run:
    opened = access.opened(
        run.wildcards.source, run.params.settings, run.input.get("rdf", []), run.params.data
    )
    with opened as (endpoint, folder):
        snapshot = pull(run.input.query, endpoint, folder, contact=run.params.contact)
    with atomic(run.output.table) as temporary:
        temporary.write_bytes(Path(snapshot.result).read_bytes())
