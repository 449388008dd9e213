from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.jobs.autoprompt.predict import Answerer
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    chosen, seed = run.params, run.params.seed
    task = tasks.load(Path(run.input.examples).parent, chosen.settings, seed)
    found, other = run.input.get("found") or "", run.input.get("other") or ""
    wordings = {Path(path).name: Path(path) for path in run.input.get("wordings") or []}
    spec = ModelSpec(**chosen.model)
    answerer = Answerer(spec, task, found, other, wordings, chosen.published, chosen.draws, seed)
    frame = answerer.answers(chosen.prompts)
    record = {**answerer.loaded.record, "prompted": answerer.record}
    schema.write(frame, schema.OUTCOMES, run.output.outcomes, run.provenance(model=record))
