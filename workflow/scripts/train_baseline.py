from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.jobs.autoprompt import tasks, train
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    chosen, seed, spec = run.params, run.params.seed, ModelSpec(**run.params.model)
    task = tasks.load(Path(run.input.examples).parent, chosen.settings, seed)
    name = run.wildcards.trained
    frame, record = train.answers(name, spec, task, chosen.training, seed)
    schema.write(frame, schema.OUTCOMES, run.output.outcomes, run.provenance(model=record))
