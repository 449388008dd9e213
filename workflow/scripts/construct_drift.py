from kgprobe import schema
from kgprobe.benchmarks.bear import build, changes
from kgprobe.job import job
from kgprobe.settings import Drift, typed
from kgprobe.sheets import manual_templates, read_table

with job(snakemake) as run:
    before, after = (schema.read(path, schema.FACTS) for path in run.input.facts)
    sets, funnel = changes.build(
        before,
        after,
        manual_templates(read_table(run.input.templates)),
        {row["id"]: row["form"] for row in read_table(run.input.labels)},
        typed(Drift, run.params.settings),
        "drift",
        run.params.seed,
    )
    told = run.provenance(settings=run.params.settings)
    sets.write(dict(run.output.items()), told)
    schema.write(build.relations_of(sets, []), build.RELATIONS, run.output.relations, told)
    schema.write(funnel, schema.FUNNEL, run.output.funnel, told)
