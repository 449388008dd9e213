from kgprobe import schema
from kgprobe.job import job
from kgprobe.knowledge import trex_facts
from kgprobe.sources import trex

with job(snakemake) as run:
    triples = schema.read(run.input.triples, trex.TRIPLES)
    labels = schema.read(run.input.labels, trex.LABELS)
    schema.write(
        trex_facts.build(triples, labels), schema.FACTS, run.output.facts, run.provenance()
    )
    schema.write(
        trex_facts.dates(triples, labels), trex_facts.DATES, run.output.dates, run.provenance()
    )
