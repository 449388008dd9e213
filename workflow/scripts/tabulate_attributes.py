from pathlib import Path

from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.tables import baselines
from kgprobe.tables.attributes import make

with job(snakemake) as run:
    make.tabulate(
        run.output.numbers,
        judged_path=run.output.judged,
        folder=run.output.texts,
        page=run.output.section,
        experiments=run.params.experiments,
        models=run.params.models,
        answers=run.input.answers,
        examples=run.input.examples,
        graph=Path(run.input.edges).parent,
        published=run.input.published[0],
        titles={
            row["relation"]: row["note"] for path in run.input.names for row in read_table(path)
        },
        thresholds=run.params.thresholds,
        content_free=run.input.content_free,
        formed=(run.params.formed, run.input.formed),
        trained_on=run.input.trained_on or "",
        aliases=run.input.aliases or "",
        below=baselines.files(run.params.baselines, run.input.get("baselines", [])),
        options={**run.params.options, "seed": run.params.seed},
        provenance=run.provenance(seed=run.params.seed, options=run.params.options),
    )
