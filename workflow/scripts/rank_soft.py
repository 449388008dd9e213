from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import job, progress
from kgprobe.probes.jobs.ontoprobe.soft import rank
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings import typed

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    folder, spec = Path(run.input.prompts), ModelSpec(**run.params.model)
    switches = typed(Switches, run.params.switches)
    rows = run.params.rows
    ranks, curves, record = rank(spec, items, candidates, folder, switches, progress, rows)
    schema.write(ranks, schema.SOFT_RANKS, run.output.ranks, run.provenance(model=record))
    schema.write(curves, schema.SOFT_CURVES, run.output.curves, run.provenance(model=record))
