from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear.choice import CHOICE
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.tables import results, sources
from kgprobe.tables.report import section

with job(snakemake) as run:
    differences = run.input.get("differences")
    folders = [Path(path).parent for path in run.input.get("funnels", [])]
    content = sources.section(
        results.read(run.input.tables),
        schema.read(differences, sources.DIFFERENCES) if differences else None,
        {f.name: schema.read(f / "funnel.parquet", schema.FUNNEL) for f in folders},
        {f.name: schema.read(f / "choice.parquet", CHOICE) for f in folders},
        {row["relation"]: row["note"] for row in read_table(run.input.names)},
        run.params.circular,
        schema.read(run.input.coverage, schema.COVERAGE) if run.input.get("coverage") else None,
    )
    section.write(content, run.output.section)
