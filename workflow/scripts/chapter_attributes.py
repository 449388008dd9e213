from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables.attributes import make

with job(snakemake) as run:
    rows = [row for path in run.input.names for row in read_table(path)]
    make.write_chapter(
        run.output.chapter,
        numbers=run.input.numbers,
        experiments=run.params.experiments,
        models=run.params.models,
        answers=run.input.answers,
        examples=run.input.examples,
        published=run.input.published,
        titles={row["relation"]: row["note"] for row in rows},
        thresholds=run.params.thresholds,
        aliases=run.input.aliases or "",
    )
