from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.tables import judged, results
from kgprobe.tables.claims import printed, section, verdicts
from kgprobe.tables.report import gather, headline

with job(snakemake) as run:
    numbers = results.read(run.input.results)
    with atomic(run.output.headline) as temporary:
        temporary.write_text(headline.text(numbers), encoding="utf-8")
    known = printed.read(Path(run.input.published[0]).parent, run.params.models)
    claims = verdicts.read(run.input.claims)
    answers = judged.read(run.input.judged)
    comparisons = verdicts.find(claims, numbers, run.params.models, known, answers)
    verdict = verdicts.frame(comparisons)
    made_of = [*run.input.results, *run.input.judged, run.input.claims, *run.input.published]
    schema.write(verdict, schema.CLAIMS, run.output.claims, run.provenance(made_of))
    verdicts.write_rows(comparisons, run.output.claim_rows)
    gather.make(run, numbers, answers, section.section(verdict))
