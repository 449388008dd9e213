from kgprobe import schema
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.settings.sources import Wikidata
from kgprobe.settings.types import typed
from kgprobe.sources.sparql.endpoint import open_source
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import Relations, relations_of

with job(snakemake) as run:
    settings, rdf = typed(Wikidata, run.params.settings), run.input.get("rdf", [])
    more = {"contact": run.config["contact"], "languages": run.params.languages}
    dumped = [schema.read(path, schema.STATEMENTS) for path in run.input.get("dumped", [])]
    source = run.wildcards.source
    endpoint, folder = open_source(source, settings, rdf, run.params.data, run.params.endpoints)
    properties = pull(run.input.properties, endpoint, folder, **more)
    rows = read_table(run.input.relations)
    named = {row["relation"] for row in rows} | {row["ancestor"] for row in rows if row["ancestor"]}
    known = relations_of(properties.frame())
    relations = known if run.params.everything else sorted(named, key=lambda name: int(name[1:]))
    statements, coverage = Relations(
        endpoint,
        folder,
        run.input.query,
        run.input.get("left_out", ""),
        large=settings.large,
        least=run.params.least,
        dumped={r[0]: frame for d in dumped for r, frame in d.group_by("relation")},
        known=frozenset(known),
        **more,
    ).pull(relations)
    schema.write(statements, schema.STATEMENTS, run.output.facts, run.provenance())
    schema.write(coverage, schema.COVERAGE, run.output.coverage, run.provenance())
