from pathlib import Path

from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables import bear_report

with job(snakemake) as run:
    bear_report.write_chapter(
        run.output.chapter,
        figures=Path(run.output.chapter).parents[1] / "figures",
        tables=run.input.tables,
        scores=run.input.scores,
        questions=run.input.questions,
        funnels=run.input.get("funnels", []),
        experiments=run.params.experiments,
        models=run.params.models,
        names={row["relation"]: row["note"] for row in read_table(run.input.names)},
        descriptions=run.params.descriptions,
        seed=run.params.seed,
    )
