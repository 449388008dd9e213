import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.settings.sources import SparqlSource
from kgprobe.settings.types import typed
from kgprobe.sources.dumps import facts
from kgprobe.sources.sparql.endpoint import open_source
from kgprobe.sources.sparql.pull import pull

with job(snakemake) as run:
    subjects = [schema.read(path, schema.ITEMS)["subject_id"] for path in run.input.questions]
    answers = [schema.read(path, schema.CANDIDATES)["id"] for path in run.input.candidates]
    named = {name for column in (*subjects, *answers) for name in column}
    # dates and other literals have no aliases
    entities = sorted(name for name in named if name.startswith("Q"))
    if read := run.input.get("read"):
        aliases = facts.aliases(pl.scan_parquet(read), entities)
    else:
        settings, rdf = typed(SparqlSource, run.params.settings), run.input.get("rdf", [])
        source = run.params.source
        endpoint, folder = open_source(source, settings, rdf, run.params.data, run.params.endpoints)
        more = {"contact": run.config["contact"], "languages": run.params.languages}
        snapshot = pull(run.input.query, endpoint, folder, {"entity": entities}, **more)
        aliases = facts.tidy_aliases(snapshot.frame().lazy()).collect()
    schema.write(aliases, facts.ALIASES, run.output.aliases, run.provenance())
