from kgprobe import schema
from kgprobe.benchmarks import inferred
from kgprobe.job import job

with job(snakemake) as run:
    made = inferred.build(run.params.phenomena, run.params.examples, run.params.seed)
    told = run.provenance(seed=run.params.seed)
    schema.write(made.items, schema.ITEMS, run.output.questions, told)
    schema.write(made.candidates, schema.CANDIDATES, run.output.candidates, told)
    schema.write(made.prompts, schema.PROMPTS, run.output.prompts, told)
    schema.write(made.taught, schema.TAUGHT, run.output.taught, told)
