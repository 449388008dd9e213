from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import gather, published
from kgprobe.tables.table import write_tsv

with job(snakemake) as run:
    answered = gather.probes(run.params.experiments, run.params.models, run.input.scores)
    folders = {Path(p).parent.name: Path(p).parent for p in run.input.questions}
    studies = gather.studies(answered, run.input.scores, folders, run.params.seed)
    taught = schema.read(run.input.taught, schema.TAUGHT) if run.input.get("taught") else None
    figures = published.read(Path(run.input.published).parent)
    made = gather.tables(studies, figures, taught)
    provenance = run.provenance(seed=run.params.seed)
    for name, parquet, text in zip(
        run.params.names, run.output.tables, run.output.texts, strict=True
    ):
        schema.write(made[name], schema.TABLE, parquet, provenance)
        write_tsv(made[name], text)
