from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables import (
    attributes_chapter,
    attributes_published,
    attributes_study,
    chapter,
    gather,
)

with job(snakemake) as run:
    tables = sorted(Path(run.input.tables).glob("*.parquet"))
    probes = gather.probes(run.params.experiments, run.params.models, run.input.answers)
    shown = attributes_chapter.Shown(
        tables={path.stem: schema.read(path, schema.TABLE) for path in tables},
        probes=probes,
        published=attributes_published.read(Path(run.input.published).parent),
        titles={
            row["relation"]: row["note"] for path in run.input.names for row in read_table(path)
        },
        examples=attributes_study.worked_examples(
            probes,
            run.input.answers,
            {Path(p).parent.name: Path(p).parent for p in run.input.examples},
            attributes_chapter.largest_model(probes),
        ),
    )
    chapter.write(attributes_chapter.chapter(shown), run.output.chapter)
