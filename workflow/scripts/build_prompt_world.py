from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks import prompt_frames, prompt_world
from kgprobe.job import job
from kgprobe.sheets import read_table

with job(snakemake) as run:
    task = prompt_world.build(
        schema.read(run.input.facts, schema.FACTS),
        schema.read(run.input.taught, schema.TAUGHT),
        {row["id"]: row["form"] for row in read_table(run.input.labels)},
        read_table(run.input.templates),
        run.params.settings,
        run.params.triggers,
        run.params.seed,
    )
    given = run.provenance(**dict(run.params.items()))
    prompt_frames.write(task, Path(run.output.examples).parent, given)
