from kgprobe import schema
from kgprobe.job import job
from kgprobe.knowledge import facts

with job(snakemake) as run:
    statements = schema.read(run.input.statements, schema.STATEMENTS)
    schema.write(facts.of_statements(statements), schema.FACTS, run.output.facts, run.provenance())
