import importlib

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import own_words
from kgprobe.benchmarks.attributes import checks, definition, frames, sensitivity
from kgprobe.benchmarks.label_templates import label_templates
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.knowledge import graph
from kgprobe.knowledge.engines import open_engine
from kgprobe.settings.knowledge import Joins
from kgprobe.settings.sources import OwnGraph
from kgprobe.settings.types import typed
from kgprobe.sources.graphs.read import PROPERTIES

with (
    job(snakemake) as run,
    open_engine(typed(Joins, run.params.joins), run.resources.mem_mb, run.threads) as engine,
):
    tables = (run.input[name] for name in ("edges", "literals", "entities", "ids"))
    normal = {row["object"]: row["label"] for row in read_table(run.input.bias)}
    if run.params.section:
        section = typed(OwnGraph, run.params.section)
        built_on = graph.read(engine, *tables, own_words.relations_by_property(section))
        rows = read_table(run.input.worded)
        rows += own_words.of_attributes(
            section, [r for t in run.input.tables for r in read_table(t)]
        )
        properties = schema.read(run.input.properties, PROPERTIES)
        words = own_words.verbalized_relations(rows, properties)
    else:
        built_on = graph.read(engine, *tables)
        names = {row["id"]: row["property"] for row in read_table(run.input.names)}
        by_label = label_templates(pl.read_parquet(run.input.properties))
        words = run.params.templated, by_label, names

    def build(i: int, attribute: str) -> None:
        module = importlib.import_module(f"kgprobe.benchmarks.attributes.{attribute}")
        settings = definition.settings_of(
            run.params.settings, attribute, run.params.seed, *words, normal
        )
        benchmark = module.build(built_on, settings)
        provenance = run.provenance(
            settings=definition.as_record(settings),
            thresholds=settings.shared.thresholds,
            code=run.params.code[attribute],
        )
        # examples have by far the most rows, so they are made, checked and written in chunks
        path = run.output.examples[i]
        schema.write_sorted(checks.check_parts(benchmark), frames.EXAMPLES, path, provenance)
        for name, contract in frames.REPORTS.items():
            schema.write(getattr(benchmark, name), contract, run.output[name][i], provenance)
        schema.write(benchmark.items, schema.ITEMS, run.output.questions[i], provenance)
        schema.write(benchmark.candidates, schema.CANDIDATES, run.output.candidates[i], provenance)
        rows = sensitivity.table(module, built_on, settings, settings.shared.sensitivity)
        schema.write(rows, frames.SENSITIVITY, run.output.sensitivity[i], provenance)

    # a benchmark that cannot be built does not prevent the others
    with run.parts() as parts:
        for i, attribute in enumerate(run.params.attributes):
            with parts.part(attribute), engine.temporary():
                build(i, attribute)
