from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.sheets import read_table
from kgprobe.sources import access
from kgprobe.sources.sparql import pull
from kgprobe.sources.statements import statements

with job(snakemake) as run:
    opened = access.opened(
        run.wildcards.source, run.params.settings, run.input.get("rdf", []), run.params.data
    )
    with opened as (endpoint, folder):
        properties = pull(run.input.properties, endpoint, folder, contact=run.params.contact)
        rows = read_table(run.input.relations)
        named = {row["relation"] for row in rows} | {row["lift"] for row in rows if row["lift"]}
        asked = None if run.params.everything else sorted(named)
        wanted = access.relations_of(properties.frame(), asked)
        frames = {
            relation: pull(
                run.input.query,
                endpoint,
                folder,
                {"property": relation},
                contact=run.params.contact,
            ).frame()
            for relation in progress(wanted, desc="relations", unit="relation")
        }
    schema.write(statements(frames), schema.STATEMENTS, run.output.facts, run.provenance())
