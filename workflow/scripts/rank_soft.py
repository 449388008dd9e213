from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.soft_memory import rank

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    folder, spec = Path(run.input.prompts), ModelSpec(**run.params.model)
    ranks, curves, record = rank(spec, items, candidates, folder, run.params.switches, progress)
    schema.write(ranks, schema.SOFT_RANKS, run.output.ranks, run.provenance(model=record))
    schema.write(curves, schema.SOFT_CURVES, run.output.curves, run.provenance(model=record))
