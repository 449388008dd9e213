from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import (
    attributes_analyses,
    attributes_published,
    attributes_study,
    attributes_tables,
    gather,
)
from kgprobe.tables.table import write_tsv

with job(snakemake) as run:
    probes = gather.probes(run.params.experiments, run.params.models, run.input.answers)
    folders = {Path(p).parent.name: Path(p).parent for p in run.input.examples}
    study = attributes_study.read(
        probes,
        run.input.answers,
        folders,
        pl.read_parquet(run.input.edges),
        pl.read_parquet(run.input.literals),
        seed=run.params.seed,
        **run.params.options,
    )
    metrics = attributes_study.measure(study)
    by_pattern = attributes_study.measure(study, patterns=True)
    printed = attributes_published.read(Path(run.input.published).parent)
    made = attributes_tables.tables(study, metrics, by_pattern, printed)
    made |= attributes_analyses.tables(study, study.alphas(), attributes_study.parts(study))
    provenance = run.provenance(seed=run.params.seed)
    folder = Path(run.output.tables)
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in made.items():
        schema.write(frame, schema.TABLE, folder / f"{name}.parquet", provenance)
        write_tsv(frame, folder / f"{name}.tsv")
    schema.write(metrics, attributes_study.METRICS, run.output.metrics, provenance)
