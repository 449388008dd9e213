import shutil
from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.jobs.autoprompt import search, tasks
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    settings, mode, seed = run.params.settings, run.params.mode, run.params.seed
    name = run.wildcards.searched
    task = tasks.load(Path(run.input.examples).parent, settings, seed)
    loaded = search.prepared(ModelSpec(**run.params.model), name, seed)
    folder, kept = Path(run.output.prompts), Path(run.params.states)
    # what other code has begun is not gone on with
    states = kept / run.params.code
    found, record = search.search_task(loaded, task, name, settings, mode, folder, states, seed)
    schema.write(found, schema.OUTCOMES, run.output.outcomes, run.provenance(model=record))
    shutil.rmtree(kept, ignore_errors=True)
