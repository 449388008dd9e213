from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.reasoned import reason
from kgprobe.probes.soft_memory import planned

with job(snakemake) as run:
    ranks, premises, record = reason(
        ModelSpec(**run.params.model),
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
        Path(str(run.input.prompts)) if run.input.prompts else None,
        run.params.switches,
        planned(run.params.settings),
        run.params.settings["schemes"],
        run.params.settings["rows"],
        progress,
    )
    schema.write(ranks, schema.REASON_RANKS, run.output.ranks, run.provenance(model=record))
    schema.write(premises, schema.PREMISE_RANKS, run.output.premises, run.provenance(model=record))
