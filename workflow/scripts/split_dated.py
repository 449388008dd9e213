from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.control import taught

with job(snakemake) as run:
    split = taught.dated(
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
        run.params.share,
        run.params.seed,
    )
    schema.write(
        split, schema.TAUGHT, run.output.taught, run.provenance(**dict(run.params.items()))
    )
