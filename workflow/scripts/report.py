from pathlib import Path

from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables.report import gather

with job(snakemake) as run:
    gather.make(
        page=Path(run.output.page),
        results=run.input.results,
        tables=run.input.tables,
        answers=run.input.answers,
        questions=run.input.questions,
        chapters=run.input.chapters,
        allows=run.input.allows,
        experiments=run.params.experiments,
        models=run.params.models,
        config=run.config,
        titles={
            row["relation"]: row["note"] for path in run.input.names for row in read_table(path)
        },
        descriptions=run.params.descriptions,
        configs=run.params.configs,
        validity=next(iter(run.input.validity), None),
    )
