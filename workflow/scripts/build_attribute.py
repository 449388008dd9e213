import importlib

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes import checks, frames, sensitivity
from kgprobe.benchmarks.attributes import settings as graph_settings
from kgprobe.benchmarks.label_templates import label_templates
from kgprobe.job import job
from kgprobe.knowledge import graph
from kgprobe.knowledge.engines import opened
from kgprobe.settings import Joins, typed
from kgprobe.sheets import read_table

with (
    job(snakemake) as run,
    opened(typed(Joins, run.params.joins), run.resources.mem_mb, run.threads) as engine,
):
    module = importlib.import_module(f"kgprobe.benchmarks.attributes.{run.wildcards.attribute}")
    built_on = graph.read(engine, run.input.edges, run.input.literals, run.input.entities)
    settings = graph_settings.settings_of(
        run.params.settings,
        run.wildcards.attribute,
        run.params.seed,
        run.params.templated,
        graph_settings.relation_names(read_table(run.input.names)),
        graph_settings.normal_labels(read_table(run.input.bias)),
        label_templates(pl.read_parquet(run.input.properties)),
    )
    made = checks.build(module, built_on, settings)
    told = graph_settings.told(settings)
    provenance = run.provenance(settings=told, thresholds=settings.shared.thresholds)
    for name, contract in frames.OUTPUTS.items():
        schema.write(getattr(made, name), contract, run.output[name], provenance)
    schema.write(made.items, schema.ITEMS, run.output.questions, provenance)
    schema.write(made.candidates, schema.CANDIDATES, run.output.candidates, provenance)
    tried = sensitivity.table(module, built_on, settings, settings.shared.sensitivity)
    schema.write(tried, frames.SENSITIVITY, run.output.sensitivity, provenance)
