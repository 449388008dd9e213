from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources import world, world_rdf, world_trex

with job(snakemake) as run:
    facts = world.load(Path(run.params.folder))
    for path, text in (
        (run.output.wikidata, world_rdf.render_wikidata(facts)),
        (run.output.dbpedia, world_rdf.render_dbpedia(facts)),
        (run.output.trex, world_trex.render_trex(facts)),
    ):
        with atomic(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
