from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import sources
from kgprobe.tables.views import write

with job(snakemake) as run:
    dumps = {
        Path(path).parent.name: (run.params.forms[Path(path).parent.name], path)
        for path in run.input.dumps
    }
    numbers = sources.access(
        schema.read(run.input.pulled, schema.STATEMENTS),
        {n: (f, schema.read(p, schema.STATEMENTS)) for n, (f, p) in sorted(dumps.items())},
    )
    schema.write(numbers, schema.RESULTS, run.output.table, run.provenance())
    write(sources.AGREEMENT, numbers, run.output.text)
