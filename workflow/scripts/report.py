from pathlib import Path

from kgprobe import schema
from kgprobe.experiments import read_table
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
    gather.make(
        page=Path(run.output.page),
        numbers=numbers,
        claims=section.section(verdict),
        results=run.input.results,
        tables=run.input.tables,
        answers=run.input.answers,
        judged=run.input.judged,
        questions=run.input.questions,
        sections=run.input.sections,
        measures=run.input.measured,
        allows=run.input.allows,
        experiments=run.params.experiments,
        models=run.params.models,
        config=run.config,
        titles={
            row["relation"]: row["note"] for path in run.input.names for row in read_table(path)
        },
        descriptions=run.params.descriptions,
        configs=run.params.configs,
        shipped=next(iter(run.input.validity), None),
    )
