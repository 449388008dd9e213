from kgprobe import schema
from kgprobe.benchmarks.bear import build
from kgprobe.benchmarks.bear.choice import rejected_subjects
from kgprobe.experiments import manual_templates, read_table
from kgprobe.job import job
from kgprobe.settings.benchmarks import Bear
from kgprobe.settings.types import typed

with job(snakemake) as run:
    relations = read_table(run.input.relations)
    built = build.build(
        schema.read(run.input.statements, schema.STATEMENTS),
        relations,
        manual_templates(read_table(run.input.templates)),
        {row["id"]: row["form"] for row in read_table(run.input.labels)},
        typed(Bear, run.params.construction),
        run.wildcards.origin,
        rejected_subjects(read_table(run.input.review), run.input.review),
        schema.read(run.input.coverage, schema.COVERAGE),
    )
    params = run.params
    provenance = run.provenance(construction=params.construction, languages=params.languages)
    for size, sets in (("big", built.big), ("lite", built.lite)):
        sets.write(dict(run.output.items()), provenance, f"{size}_")
        names = build.relations_of(sets, relations)
        schema.write(names, build.RELATIONS, run.output[f"{size}_relations"], provenance)
    for name, contract in build.REPORTS.items():
        schema.write(getattr(built, name), contract, run.output[name], provenance)
