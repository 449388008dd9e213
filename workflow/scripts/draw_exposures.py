from kgprobe import schema
from kgprobe.benchmarks.bear import exposed
from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.job import job
from kgprobe.settings import Exposures, typed

with job(snakemake) as run:
    whole = Sets(
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
        schema.read(run.input.prompts, schema.PROMPTS),
    )
    chosen = typed(Exposures, run.params.exposures)
    found = exposed.choose(whole, len(chosen.counts) + 1, chosen.facts, run.params.seed)
    found.write(dict(run.output.items()), run.provenance(seed=run.params.seed))
