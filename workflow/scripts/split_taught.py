import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.job import job
from kgprobe.probes.control import taught
from kgprobe.sheets import read_table

with job(snakemake) as run:
    asked = taught.asked_facts(
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
    )
    relations = sorted({row["relation"] for row in read_table(run.input.templates)})
    facts = schema.read(run.input.facts, schema.FACTS)
    examples = [schema.read(path, EXAMPLES) for path in run.input.examples]
    known = pl.concat(examples) if examples else None
    split = taught.split(
        facts,
        asked,
        relations,
        run.params.pool,
        run.params.share,
        run.params.seed,
        known,
    )
    provenance = run.provenance(**dict(run.params.items()))
    schema.write(split, schema.TAUGHT, run.output.taught, provenance)
    told = taught.kinds(split, {"world_big": asked}, known)
    schema.write(told, schema.TAUGHT_KINDS, run.output.kinds, provenance)
