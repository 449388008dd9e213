from kgprobe.job import job
from kgprobe.sheets import read_table
from kgprobe.tables import attributes_report

with job(snakemake) as run:
    rows = [row for path in run.input.names for row in read_table(path)]
    attributes_report.write_chapter(
        run.output.chapter,
        tables=run.input.tables,
        experiments=run.params.experiments,
        models=run.params.models,
        answers=run.input.answers,
        examples=run.input.examples,
        published=run.input.published,
        titles={row["relation"]: row["note"] for row in rows},
        thresholds=run.params.thresholds,
        aliases=run.input.aliases or "",
    )
