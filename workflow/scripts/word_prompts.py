from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.wordings import word
from kgprobe.sheets import read_table

with job(snakemake) as run:
    prompts, origins = word(
        schema.read(run.input.questions, schema.ITEMS),
        read_table(run.input.templates),
        [row for path in run.input.tables for row in read_table(path)],
        run.params.settings,
        run.params.seed,
    )
    provenance = run.provenance(seed=run.params.seed)
    schema.write(origins, schema.WORDINGS, run.output.wordings, provenance)
    schema.write(prompts, schema.PROMPTS, run.output.prompts, provenance)
