from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear import against_released
from kgprobe.benchmarks.bear import released as bear_released
from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.settings.benchmarks import Bear
from kgprobe.settings.types import typed
from kgprobe.tables import sources
from kgprobe.tables.views import write

with job(snakemake) as run:
    released = bear_released.load(Path(run.input.released[0]), benchmark="bear_big_released")
    constructed = BearFrames(
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
        schema.read(run.input.prompts, schema.PROMPTS),
    )
    forms = {row["id"]: row["form"] for row in read_table(run.input.labels)}
    statements = schema.read(run.input.statements, schema.STATEMENTS)
    rows = read_table(run.input.relations)
    fresh = against_released.Fresh(statements, rows, forms, typed(Bear, run.params.construction))
    states = against_released.states(released, fresh)
    agreement = against_released.agreement(released, constructed, fresh)
    numbers = sources.against_released(states, agreement)
    schema.write(states, against_released.RELEASED_STATES, run.output.states, run.provenance())
    schema.write(numbers, schema.RESULTS, run.output.table, run.provenance())
    write(sources.BY_RELATION, numbers, run.output.text)
