from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import frames, graph
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.settings.benchmarks import PromptGraph
from kgprobe.settings.types import typed

with job(snakemake) as run:
    folder = Path(run.output.examples).parent
    task = graph.build(
        folder.name,
        schema.read(run.input.facts, schema.FACTS),
        read_table(run.input.templates),
        typed(PromptGraph, run.params.settings),
        run.params.triggers,
        run.params.seed,
    )
    given = run.provenance(**dict(run.params.items()))
    frames.write(task, folder, given)
