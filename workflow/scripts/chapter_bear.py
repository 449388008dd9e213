from pathlib import Path

from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables.bear import chapter

with job(snakemake) as run:
    chapter.write(
        run.output.chapter,
        figures=Path(run.output.chapter).parents[1] / "figures",
        results=run.input.results,
        scores=run.input.scores,
        questions=run.input.questions,
        funnels=run.input.get("funnels", []),
        experiments=run.params.experiments,
        models=run.params.models,
        names={
            row["relation"]: row["note"] for path in run.input.names for row in read_table(path)
        },
        descriptions=run.params.descriptions,
        seed=run.params.seed,
    )
