from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.settings.sources import SparqlSource
from kgprobe.settings.types import typed
from kgprobe.sources.sparql.endpoint import open_source
from kgprobe.sources.sparql.pull import pull

with job(snakemake) as run:
    settings, rdf = typed(SparqlSource, run.params.settings), run.input.get("rdf", [])
    source = run.params.source
    endpoint, folder = open_source(source, settings, rdf, run.params.data, run.params.endpoints)
    more = {"contact": run.config["contact"], "languages": run.params.languages}
    for query, table in zip(run.input.queries, run.output.tables, strict=True):
        snapshot = pull(query, endpoint, folder, **more)
        with atomic(table) as temporary:
            temporary.write_bytes(Path(snapshot.result).read_bytes())
