from kgprobe import schema
from kgprobe.benchmarks.bear import build, dated
from kgprobe.job import job
from kgprobe.settings import Dated, typed
from kgprobe.sheets import manual_templates, read_table

with job(snakemake) as run:
    sets, funnel = dated.build(
        schema.read(run.input.statements, schema.STATEMENTS),
        dated.worded(
            read_table(run.input.dated), manual_templates(read_table(run.input.templates))
        ),
        {row["id"]: row["form"] for row in read_table(run.input.labels)},
        typed(Dated, run.params.settings),
        f"dated_{run.wildcards.origin}",
        run.params.seed,
    )
    told = run.provenance(settings=run.params.settings)
    sets.write(dict(run.output.items()), told)
    schema.write(build.relations_of(sets, []), build.RELATIONS, run.output.relations, told)
    schema.write(funnel, schema.FUNNEL, run.output.funnel, told)
