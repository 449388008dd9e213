from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks import bear_drift, bear_released
from kgprobe.benchmarks.bear_frames import Sets
from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables import bear_drift as drift_table
from kgprobe.tables.table import write_tsv

with job(snakemake) as run:
    released = bear_released.load(Path(run.input.released), benchmark="bear_big_released")
    constructed = Sets(
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
        schema.read(run.input.prompts, schema.PROMPTS),
    )
    forms = {row["id"]: row["form"] for row in read_table(run.input.labels)}
    statements = schema.read(run.input.statements, schema.STATEMENTS)
    rows = read_table(run.input.relations)
    fresh = bear_drift.Fresh(statements, rows, forms, run.params.construction)
    states = bear_drift.states(released, fresh)
    made = drift_table.drift(states, bear_drift.agreement(released, constructed, fresh))
    schema.write(states, bear_drift.DRIFT, run.output.states, run.provenance())
    schema.write(made, schema.TABLE, run.output.table, run.provenance())
    write_tsv(made, run.output.text)
