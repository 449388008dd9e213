from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes import prompt_tasks, prompt_trained
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    chosen, seed, spec = run.params, run.params.seed, ModelSpec(**run.params.model)
    task = prompt_tasks.load(Path(run.input.examples).parent, chosen.settings, seed)
    name = run.wildcards.trained
    frame, record = prompt_trained.answers(name, spec, task, chosen.training, seed)
    schema.write(frame, schema.OUTCOMES, run.output.outcomes, run.provenance(model=record))
