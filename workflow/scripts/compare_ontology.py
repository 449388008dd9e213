from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import released
from kgprobe.job import job
from kgprobe.knowledge import ontology as built
from kgprobe.tables import sources
from kgprobe.tables.views import write

with job(snakemake) as run:
    folder = Path(run.input.released[0])
    classes = released.classes(folder)
    properties = released.properties(folder)
    ours = schema.read(run.input.classes, built.CLASSES)
    chains = schema.read(run.input.class_chains, built.CHAINS)
    labels = dict(ours.select("class", "label").rows())
    differing = pl.concat(
        [
            sources.chain_differences(
                classes, ours, chains, schema.read(run.input.rejects, built.REJECTS)
            ),
            sources.property_differences(
                properties,
                schema.read(run.input.properties, built.PROPERTIES),
                schema.read(run.input.property_chains, built.CHAINS),
                schema.read(run.input.alignment, built.ALIGNMENT),
                labels,
            ),
        ]
    )
    numbers = sources.agreement(classes, properties, differing)
    schema.write(numbers, schema.RESULTS, run.output.table, run.provenance())
    write(sources.ONTOLOGY, numbers, run.output.text)
    schema.write(differing, sources.DIFFERENCES, run.output.differences, run.provenance())
