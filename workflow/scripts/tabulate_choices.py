from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import chapter, choices
from kgprobe.tables.table import write_tsv

with job(snakemake) as run:
    shipped = run.input.get("shipped")
    answered = choices.answered(
        run.params.experiments,
        run.params.models,
        run.input.questions,
        run.input.chosen,
        choices.shipped(shipped) if shipped else None,
    )
    printed = choices.read_printed(run.input.memorising, run.input.reasoning)
    provenance = run.provenance()
    made = choices.tables(answered, printed)
    for frame, parquet, text in zip(made, run.output.tables, run.output.texts, strict=True):
        schema.write(frame, schema.TABLE, parquet, provenance)
        write_tsv(frame, text)
    chapter.write(choices.chapter(made), run.output.chapter)
