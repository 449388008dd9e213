from kgprobe.job import job
from kgprobe.knowledge import graph
from kgprobe.knowledge.engines import open_engine
from kgprobe.settings.knowledge import Joins
from kgprobe.settings.types import typed

with (
    job(snakemake) as run,
    open_engine(typed(Joins, run.params.joins), run.resources.mem_mb, run.threads) as engine,
):
    facts = engine.files(run.input.facts)
    encoded = graph.encode(engine, facts, run.params.literals, run.params.own)
    provenance = run.provenance(counts=dict(encoded.counts))
    graph.write(encoded, dict(run.output.items()), provenance)
