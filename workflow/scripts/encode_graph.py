import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes import frames, graph
from kgprobe.job import job

with job(snakemake) as run:
    facts = pl.concat([pl.scan_parquet(path) for path in run.input.facts])
    made = graph.encode(facts, run.params.literals, run.params.memory_mb)
    counts = pl.DataFrame({"count": list(made.counts), "n": list(made.counts.values())})
    provenance = run.provenance(counts=dict(made.counts), wedges=graph.wedge_sums(made))
    schema.write(made.edges, frames.EDGES, run.output.edges, provenance)
    schema.write(made.literals, frames.LITERAL_EDGES, run.output.literals, provenance)
    schema.write(made.entities, frames.ENTITIES, run.output.entities, provenance)
    schema.write(counts, frames.COUNTS, run.output.counts, provenance)
