from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.answers import score_frame
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    prompts = schema.read(run.input.prompts, schema.PROMPTS)
    spec = ModelSpec(**run.params.model)
    scores, record = score_frame(spec, items, candidates, prompts, run.wildcards.method, progress)
    schema.write(scores, schema.SCORES, run.output.scores, run.provenance(model=record))
