from pathlib import Path

from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables import gather_report

with job(snakemake) as run:
    gather_report.make(
        page=Path(run.output.page),
        tables=run.input.tables,
        scores=run.input.scores,
        questions=run.input.questions,
        funnels=run.input.get("funnels", []),
        experiments=run.params.experiments,
        models=run.params.models,
        names={row["relation"]: row["note"] for row in read_table(run.input.names)},
        descriptions=run.params.descriptions,
        config=run.config,
        seed=run.params.seed,
        chapters=run.input.get("chapters", []),
    )
