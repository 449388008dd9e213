from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources.world import build, rdf, trex

with job(snakemake) as run:
    facts = build.load(Path(run.input.tables[0]).parent)
    documents = trex.dump_trex(trex.render_trex(facts))
    for path, data in (
        (run.output.wikidata, rdf.render_wikidata(facts).encode()),
        (run.output.dbpedia, rdf.render_dbpedia(facts).encode()),
        (Path(run.output.trex) / "re-nlg_0-10000.json", documents),
    ):
        with atomic(path) as temporary:
            temporary.write_bytes(data)
