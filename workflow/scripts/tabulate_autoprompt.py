from pathlib import Path

from kgprobe.job import job
from kgprobe.tables import baselines
from kgprobe.tables.autoprompt import make

with job(snakemake) as run:
    make.make(
        table=Path(run.output.results),
        judged_path=Path(run.output.judged),
        folder=Path(run.output.tables),
        page=Path(run.output.section),
        rows=run.params.rows,
        models=run.params.models,
        outcomes=run.params.outcomes,
        tasks=[path for path in run.input.tasks if path.endswith("examples.parquet")],
        prompts=run.input.get("prompts") or [],
        swept=run.params.swept,
        swept_files=run.input.get("sweeps") or [],
        printed=str(Path(run.input.published[0]).parent),
        trained_on=run.input.get("trained_on") or "",
        provenance=run.provenance(),
        seed=run.params.seed,
        below=baselines.files(run.params.baselines, run.input.get("baselines", [])),
        **run.params.settings,
    )
