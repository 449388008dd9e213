from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources import world, world_dumps

with job(snakemake) as run:
    facts = world.load(Path(run.input.tables[0]).parent)
    for path, data in (
        (run.output.json, world_dumps.render_json(facts)),
        (run.output.truthy, world_dumps.render_truthy(facts)),
    ):
        with atomic(path) as temporary:
            temporary.write_bytes(data)
