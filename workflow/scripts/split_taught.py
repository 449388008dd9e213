from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes import taught
from kgprobe.sheets import read_table

with job(snakemake) as run:
    asked = taught.asked_facts(
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
    )
    relations = sorted({row["relation"] for row in read_table(run.input.templates)})
    facts = schema.read(run.input.facts, schema.FACTS)
    split = taught.split(
        facts, asked, relations, run.params.pool, run.params.share, run.params.seed
    )
    schema.write(
        split, schema.TAUGHT, run.output.taught, run.provenance(**dict(run.params.items()))
    )
