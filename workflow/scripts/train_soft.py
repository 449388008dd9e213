from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import job, progress
from kgprobe.probes.jobs.ontoprobe.soft import planned, train
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings import Soft, typed

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    folder, plan = Path(run.output.prompts), planned(typed(Soft, run.params.settings))
    spec, switches = ModelSpec(**run.params.model), typed(Switches, run.params.switches)
    run.note(**train(spec, items, candidates, switches, plan, folder, progress))
