from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import ontoprobe_released
from kgprobe.job import job
from kgprobe.knowledge import ontology as built
from kgprobe.knowledge.ontology_build import REJECTS
from kgprobe.tables import ontology
from kgprobe.tables.table import write_tsv

with job(snakemake) as run:
    folder = Path(run.input.released)
    classes = ontoprobe_released.classes(folder)
    properties = ontoprobe_released.properties(folder)
    ours = schema.read(run.input.classes, built.CLASSES)
    chains = schema.read(run.input.class_chains, built.CHAINS)
    labels = dict(ours.select("class", "label").rows())
    differing = pl.concat(
        [
            ontology.chain_differences(
                classes, ours, chains, schema.read(run.input.rejects, REJECTS)
            ),
            ontology.property_differences(
                properties,
                schema.read(run.input.properties, built.PROPERTIES),
                schema.read(run.input.property_chains, built.CHAINS),
                schema.read(run.input.alignment, built.ALIGNMENT),
                labels,
            ),
        ]
    )
    made = ontology.agreement(classes, properties, differing)
    schema.write(made, schema.TABLE, run.output.table, run.provenance())
    write_tsv(made, run.output.text)
    schema.write(differing, ontology.DIFFERENCES, run.output.differences, run.provenance())
