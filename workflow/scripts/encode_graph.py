from kgprobe.job import job
from kgprobe.knowledge import graph
from kgprobe.knowledge.engine import Engine

with job(snakemake) as run, Engine(run.params.memory_mb, run.threads) as engine:
    made = graph.encode(engine, engine.files(run.input.facts), run.params.literals)
    provenance = run.provenance(counts=dict(made.counts), wedges=graph.wedge_sums(made))
    graph.write(made, dict(run.output.items()), provenance)
