from pathlib import Path

from kgprobe.job import job
from kgprobe.tables import gather_report

with job(snakemake) as run:
    gather_report.make(
        page=Path(run.output.page),
        headline=run.input.headline,
        tables=run.input.tables,
        answers=run.input.answers,
        questions=run.input.questions,
        chapters=run.input.chapters,
        experiments=run.params.experiments,
        models=run.params.models,
        config=run.config,
    )
