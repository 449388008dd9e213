import shutil
from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    shards = Path(run.params.shards)
    scores, record = score_frame(
        ModelSpec(**run.params.model),
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
        schema.read(run.input.prompts, schema.PROMPTS),
        run.wildcards.method,
        progress,
        # parts that other code has finished are not taken up
        shards / run.params.code,
        run.threads,
    )
    schema.write(scores, schema.SCORES, run.output.scores, run.provenance(model=record))
    shutil.rmtree(shards, ignore_errors=True)
