import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.graph_frames import EXAMPLES
from kgprobe.job import job
from kgprobe.probes import taught
from kgprobe.sheets import read_table

with job(snakemake) as run:
    asked = taught.asked_facts(
        schema.read(run.input.questions, schema.ITEMS),
        schema.read(run.input.candidates, schema.CANDIDATES),
    )
    relations = sorted({row["relation"] for row in read_table(run.input.templates)})
    facts = schema.read(run.input.facts, schema.FACTS)
    examples = [schema.read(path, EXAMPLES) for path in run.input.examples]
    split = taught.split(
        facts,
        asked,
        relations,
        run.params.pool,
        run.params.share,
        run.params.seed,
        pl.concat(examples) if examples else None,
    )
    schema.write(
        split, schema.TAUGHT, run.output.taught, run.provenance(**dict(run.params.items()))
    )
