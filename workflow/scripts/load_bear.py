from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear import released as bear_released
from kgprobe.job import job

with job(snakemake) as run:
    released, folder = run.params.released, Path(run.input.folder[0])
    sets = bear_released.load(
        folder,
        released["instances_per_relation"],
        released["templates"],
        Path(run.output.questions).parent.name,
        run.params.seed,
    )
    provenance = run.provenance(**released)
    sets.write(dict(run.output.items()), provenance)
    relations = bear_released.relations(folder, sets)
    schema.write(relations, bear_released.RELATIONS, run.output.relations, provenance)
