from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.jobs.rank import rank_frame
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    prompts = schema.read(run.input.prompts, schema.PROMPTS)
    ranks, top, record = rank_frame(
        ModelSpec(**run.params.model),
        items,
        candidates,
        prompts,
        progress,
        space=run.params.switches["candidate_space"],
        unknown=run.params.switches["unknown_candidates"],
    )
    schema.write(ranks, schema.RANKS, run.output.ranks, run.provenance(model=record))
    schema.write(top, schema.TOPS, run.output.top, run.provenance(model=record))
