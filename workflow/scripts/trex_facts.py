from kgprobe import schema
from kgprobe.job import job
from kgprobe.knowledge import facts_trex
from kgprobe.knowledge.engines import open_engine
from kgprobe.settings.knowledge import Joins
from kgprobe.settings.types import typed

with (
    job(snakemake) as run,
    open_engine(typed(Joins, run.params.joins), run.resources.mem_mb, run.threads) as engine,
):
    triples, labels = (engine.files([run.input[name]]) for name in ("triples", "labels"))
    tables = {
        "facts": (facts_trex.of_trex(triples, labels), schema.FACTS),
        "dates": (facts_trex.dates(triples, labels), facts_trex.DATES),
    }
    for name, (rows, contract) in tables.items():
        with engine.temporary():
            engine.write(engine.keep(rows), contract, run.output[name], run.provenance())
