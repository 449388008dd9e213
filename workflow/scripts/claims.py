from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import results
from kgprobe.tables.claims import chapter, printed, verdicts
from kgprobe.tables.report.chapter import write

with job(snakemake) as run:
    claims = verdicts.read(run.input.claims)
    known = printed.read(Path(run.input.published[0]).parent, run.params.models)
    found = verdicts.find(claims, results.read(run.input.results), run.params.models, known)
    verdict = verdicts.frame(found)
    schema.write(verdict, schema.CLAIMS, run.output.claims, run.provenance())
    verdicts.write_rows(found, run.output.rows)
    write(chapter.chapter(verdict), run.output.chapter)
