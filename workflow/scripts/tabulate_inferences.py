from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import inferences
from kgprobe.tables.answers import judge
from kgprobe.tables.report import chapter
from kgprobe.tables.results import frame
from kgprobe.tables.views import write_all

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    answered = []
    for row, path in zip(run.params.experiments, run.input.scores, strict=True):
        judged = judge(schema.read(path, schema.SCORES), items, candidates, where=path)
        answered.append(inferences.answered(row["model"], items, candidates, judged))
    papers = inferences.numbers(answered, run.params.seed)
    made = pl.concat([frame(paper, found) for paper, found in papers.items()])
    schema.write(made, schema.RESULTS, run.output.results, run.provenance(seed=run.params.seed))
    write_all(inferences.VIEWS, made, Path(run.output.texts))
    chapter.write(inferences.chapter(made), run.output.chapter)
