import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.settings.sources import Dbpedia
from kgprobe.settings.types import typed
from kgprobe.sources.sparql.endpoint import open_source
from kgprobe.sources.sparql.relations import pull_instances

with job(snakemake) as run:
    settings, rdf = typed(Dbpedia, run.params.settings), run.input.get("rdf", [])
    source = run.wildcards.source
    endpoint, folder = open_source(source, settings, rdf, run.params.data, run.params.endpoints)
    instances, in_part = pull_instances(
        pl.read_parquet(run.input.classes)["class"].to_list(),
        endpoint,
        folder,
        run.input.query,
        settings.most_instances,
        languages=run.params.languages,
        contact=run.config["contact"],
    )
    provenance = {**run.provenance(), "in_part": in_part}
    schema.write(instances, schema.TYPES, run.output.table, provenance)
