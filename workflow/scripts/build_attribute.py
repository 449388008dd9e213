import importlib

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import (
    graph,
    graph_checks,
    graph_frames,
    graph_sensitivity,
    graph_settings,
)
from kgprobe.benchmarks.label_templates import label_templates
from kgprobe.job import job
from kgprobe.sheets import read_table

with job(snakemake) as run:
    module = importlib.import_module(f"kgprobe.benchmarks.{run.wildcards.attribute}")
    built_on = graph.Graph(
        schema.read(run.input.edges, graph_frames.EDGES),
        schema.read(run.input.literals, graph_frames.LITERAL_EDGES),
        schema.read(run.input.entities, graph_frames.ENTITIES),
    )
    settings = graph_settings.settings_of(
        run.params.settings,
        run.wildcards.attribute,
        run.params.seed,
        graph_settings.templated(read_table(path) for path in run.input.templates),
        graph_settings.relation_names(read_table(run.input.names)),
        graph_settings.normal_labels(read_table(run.input.bias)),
        label_templates(pl.read_parquet(run.input.properties)),
    )
    made = graph_checks.build(module, built_on, settings)
    told = graph_settings.told(settings)
    provenance = run.provenance(settings=told, thresholds=run.params.settings["thresholds"])
    for name, contract in graph_frames.OUTPUTS.items():
        schema.write(getattr(made, name), contract, run.output[name], provenance)
    schema.write(made.items, schema.ITEMS, run.output.questions, provenance)
    schema.write(made.candidates, schema.CANDIDATES, run.output.candidates, provenance)
    tried = graph_sensitivity.table(module, built_on, settings, run.params.settings["sensitivity"])
    schema.write(tried, graph_frames.SENSITIVITY, run.output.sensitivity, provenance)
