from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import frames, graph
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.settings.benchmarks import PromptWorld
from kgprobe.settings.types import typed

with job(snakemake) as run:
    task = graph.build_world(
        schema.read(run.input.facts, schema.FACTS),
        schema.read(run.input.trained_on, schema.TRAINED_ON),
        {row["id"]: row["form"] for row in read_table(run.input.labels)},
        read_table(run.input.templates),
        typed(PromptWorld, run.params.settings),
        run.params.triggers,
        run.params.seed,
    )
    given = run.provenance(**dict(run.params.items()))
    frames.write(task, Path(run.output.examples).parent, given)
