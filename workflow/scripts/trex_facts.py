from kgprobe import schema
from kgprobe.job import job
from kgprobe.knowledge import facts
from kgprobe.sources.dumps import trex

with job(snakemake) as run:
    triples = schema.read(run.input.triples, trex.TRIPLES)
    labels = schema.read(run.input.labels, trex.LABELS)
    schema.write(facts.of_trex(triples, labels), schema.FACTS, run.output.facts, run.provenance())
    schema.write(facts.dates(triples, labels), facts.DATES, run.output.dates, run.provenance())
