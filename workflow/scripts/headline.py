from pathlib import Path

from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.tables import results
from kgprobe.tables.report import chapter, headline, measured

with job(snakemake) as run:
    found = results.read(run.input.results)
    with atomic(run.output.text) as temporary:
        temporary.write_text(headline.text(found), encoding="utf-8")
    folders = {Path(path).parent for path in run.input.questions}
    chapter.write(measured.chapter(found, folders, run.input.measured), run.output.chapter)
