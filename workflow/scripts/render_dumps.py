from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources.world import build, dumps

with job(snakemake) as run:
    facts = build.load(Path(run.input.tables[0]).parent)
    for path, data in (
        (run.output.json, dumps.render_json(facts)),
        (run.output.truthy, dumps.render_truthy(facts)),
        (run.output.names, dumps.render_names(facts)),
    ):
        with atomic(path) as temporary:
            temporary.write_bytes(data)
