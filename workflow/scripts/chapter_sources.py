from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear_choice import CHOICE
from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables import chapter, ontology, sources

with job(snakemake) as run:
    differences = run.input.get("differences")
    folders = [Path(path).parent for path in run.input.get("funnels", [])]
    made = sources.chapter(
        {Path(path).stem: schema.read(path, schema.TABLE) for path in run.input.tables},
        schema.read(differences, ontology.DIFFERENCES) if differences else None,
        {f.name: schema.read(f / "funnel.parquet", schema.FUNNEL) for f in folders},
        {f.name: schema.read(f / "choice.parquet", CHOICE) for f in folders},
        {row["relation"]: row["note"] for row in read_table(run.input.names)},
        run.params.circular,
    )
    chapter.write(made, run.output.chapter)
