from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import job, progress
from kgprobe.probes.jobs.ontoprobe.reason import reason
from kgprobe.probes.jobs.ontoprobe.soft import planned
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings import Soft, typed

with job(snakemake) as run:
    soft = typed(Soft, run.params.settings)
    ranks, premises, record = reason(
        ModelSpec(**run.params.model),
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
        Path(str(run.input.prompts)) if run.input.prompts else None,
        typed(Switches, run.params.switches),
        planned(soft),
        soft.schemes,
        soft.rows,
        progress,
    )
    schema.write(ranks, schema.REASON_RANKS, run.output.ranks, run.provenance(model=record))
    schema.write(premises, schema.PREMISE_RANKS, run.output.premises, run.provenance(model=record))
