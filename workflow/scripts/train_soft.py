from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.soft_memory import planned, train

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    folder, plan = Path(run.output.prompts), planned(run.params.settings)
    spec = ModelSpec(**run.params.model)
    run.note(**train(spec, items, candidates, run.params.switches, plan, folder, progress))
