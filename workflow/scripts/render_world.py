from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources import world, world_rdf, world_trex

with job(snakemake) as run:
    facts = world.load(Path(run.input.tables[0]).parent)
    documents = world_trex.dump_trex(world_trex.render_trex(facts))
    for path, data in (
        (run.output.wikidata, world_rdf.render_wikidata(facts).encode()),
        (run.output.dbpedia, world_rdf.render_dbpedia(facts).encode()),
        (Path(run.output.trex) / "re-nlg_0-10000.json", documents),
    ):
        with atomic(path) as temporary:
            temporary.write_bytes(data)
