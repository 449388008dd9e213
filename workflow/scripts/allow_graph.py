import functools
import importlib
from dataclasses import replace

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import allowed, own_words
from kgprobe.benchmarks.attributes import definition
from kgprobe.benchmarks.autoprompt import graph as prompts
from kgprobe.benchmarks.bear import build as bear
from kgprobe.benchmarks.ontoprobe import modes, own
from kgprobe.experiments import manual_templates, read_table
from kgprobe.job import job
from kgprobe.knowledge import graph, ontology
from kgprobe.knowledge.engines import open_engine
from kgprobe.settings.benchmarks import ATTRIBUTES, PromptGraph
from kgprobe.settings.knowledge import Joins
from kgprobe.settings.probes import Ontoprobe
from kgprobe.settings.sources import OwnGraph
from kgprobe.settings.types import typed
from kgprobe.sources.graphs.read import PROPERTIES

with (
    job(snakemake) as run,
    open_engine(typed(Joins, run.params.joins), run.resources.mem_mb, run.threads) as engine,
):
    name, section = run.wildcards.graph, typed(OwnGraph, run.params.section)
    facts = schema.read(run.input.facts, schema.STATEMENTS)
    templates = read_table(run.input.templates)

    @functools.cache
    def built() -> bear.NestedSets:
        relations, manual = read_table(run.input.relations), manual_templates(templates)
        return bear.build(facts, relations, manual, {}, section.bear, name)

    @functools.cache
    def tasks() -> str:
        chosen = typed(Ontoprobe, run.params.ontoprobe)
        frames = (
            schema.read(run.input[table], replace(contract, may_be_empty=True))
            for table, contract in ontology.TABLES.items()
        )
        concept_rows = own.take(
            ontology.OntologyTables(*frames),
            own.popularity(facts),
            read_table(run.input.patterns),
            modes.resolve(chosen.mode, chosen.switches),
            run.params.seed,
            run.params.properties,
            partly=True,
        )
        counts = pl.Series([row.task for row in concept_rows.rows]).value_counts(sort=True).rows()
        return ", ".join(f"{task} {n:,}" for task, n in sorted(counts))

    def searched() -> str:
        settings = typed(PromptGraph, run.params.prompts)
        statements = schema.read(run.input.statements, schema.FACTS)
        task = prompts.build(f"auto_{name}", statements, templates, settings, 1, run.params.seed)
        groups = task.examples["group"].n_unique()
        return f"{groups} relations, {task.examples.height:,} facts"

    more = [row for path in run.input.tables for row in read_table(path)]
    rows = [*templates, *own_words.of_attributes(section, more)]
    words = own_words.verbalized_relations(rows, schema.read(run.input.names, PROPERTIES))
    normal = {row["object"]: row["label"] for row in read_table(run.input.bias)}
    known = own_words.relations_by_property(section)
    statements = engine.files([run.input.statements])
    encoded = graph.encode(engine, statements, False, section.ids == "own", known)

    def attribute(one: str) -> str:
        settings = definition.settings_of(
            run.params.attributes, one, run.params.seed, *words, normal
        )
        module = importlib.import_module(f"kgprobe.benchmarks.attributes.{one}")
        with engine.temporary():
            benchmark = module.build(encoded, settings)
        sizes = benchmark.sizes.filter(pl.col("build") != "sampled").row(-1, named=True)
        return f"{sizes['patterns']} patterns, {sizes['examples']:,} examples"

    tries = {
        f"{name}_big": lambda: built().describe("big"),
        f"{name}_lite": lambda: built().describe("lite"),
        f"onto_{name}": tasks,
        f"onto_{name}_lite": lambda: f"a part of {tasks()}",
        f"auto_{name}": searched,
    }
    results = [
        allowed.try_construction(benchmark, construction)
        for benchmark, construction in tries.items()
    ]
    results += [allowed.try_construction(one, lambda one=one: attribute(one)) for one in ATTRIBUTES]
    table = pl.DataFrame(results, schema=dict(allowed.ALLOWED.columns), orient="row")
    schema.write(table, allowed.ALLOWED, run.output.table, run.provenance())
    with schema.atomic(run.output.text) as temporary:
        temporary.write_text(allowed.text(results), encoding="utf-8")
