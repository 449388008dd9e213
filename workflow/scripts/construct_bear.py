from kgprobe import schema
from kgprobe.benchmarks import bear
from kgprobe.benchmarks.bear_choice import Review
from kgprobe.job import job
from kgprobe.sheets import manual_templates, read_table

with job(snakemake) as run:
    relations = read_table(run.input.relations)
    built = bear.build(
        schema.read(run.input.statements, schema.STATEMENTS),
        relations,
        manual_templates(read_table(run.input.templates)),
        {row["id"]: row["form"] for row in read_table(run.input.labels)},
        run.params.construction,
        run.wildcards.origin,
        Review.of(read_table(run.input.review), run.input.review),
    )
    provenance = run.provenance(construction=run.params.construction)
    for size, sets in (("big", built.big), ("lite", built.lite)):
        schema.write(sets.items, schema.ITEMS, run.output[f"{size}_questions"], provenance)
        schema.write(
            sets.candidates, schema.CANDIDATES, run.output[f"{size}_candidates"], provenance
        )
        schema.write(sets.prompts, schema.PROMPTS, run.output[f"{size}_prompts"], provenance)
        names = bear.relations_of(sets, relations)
        schema.write(names, bear.RELATIONS, run.output[f"{size}_relations"], provenance)
    for name, contract in bear.REPORTS.items():
        schema.write(getattr(built, name), contract, run.output[name], provenance)
