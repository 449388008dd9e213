from pathlib import Path

from kgprobe.job import job
from kgprobe.tables import autoprompt_make

with job(snakemake) as run:
    autoprompt_make.make(
        folder=Path(run.output.tables),
        page=Path(run.output.chapter),
        rows=run.params.rows,
        models=run.params.models,
        outcomes=run.params.outcomes,
        tasks=[path for path in run.input.tasks if path.endswith("examples.parquet")],
        prompts=run.input.get("prompts") or [],
        swept=run.params.swept,
        sweeps=run.input.get("sweeps") or [],
        published=str(Path(run.input.published).parent),
        taught=run.input.get("taught") or "",
        settings=run.params.settings,
        provenance=run.provenance(),
        seed=run.params.seed,
    )
