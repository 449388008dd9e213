from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.jobs.autoprompt import search, sweep, tasks
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    chosen, seed = run.params, run.params.seed
    task = tasks.load(Path(run.input.examples).parent, chosen.settings, seed)
    name = run.wildcards.prompt
    # points that other code has measured are measured again
    shards = Path(run.params.shards) / run.params.code
    loaded = search.prepared(ModelSpec(**chosen.model), name, seed)
    if run.wildcards.sweep == "grid":
        frame = sweep.grid(loaded, task, chosen.settings, chosen.mode, shards)
    else:
        own = (chosen.settings, chosen.mode, shards, seed)
        frame = sweep.low_data(loaded, task, name, *own)
    schema.write(frame, schema.SWEEPS, run.output.sweep, run.provenance(model=loaded.record))
