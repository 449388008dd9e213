import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import own_words
from kgprobe.benchmarks.label_templates import label_templates
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.probes.prompts.variants.relations import word
from kgprobe.settings.probes import AttributePrompts
from kgprobe.settings.sources import OwnGraph
from kgprobe.settings.types import typed

with job(snakemake) as run:
    shared = read_table(run.input.templates)
    more = [row for path in run.input.tables for row in read_table(path)]
    properties = run.input.get("properties")
    by_label = label_templates(pl.read_parquet(properties)) if properties else {}
    if run.params.section:
        more = own_words.of_attributes(typed(OwnGraph, run.params.section), more)
    drawn = read_table(run.input.synonyms) if run.input.synonyms else []
    settings = typed(AttributePrompts, run.params.settings)
    provenance = run.provenance(seed=run.params.seed)
    paths = zip(run.input.questions, run.output.prompts, run.output.origins, strict=True)
    for questions, prompts, target in paths:
        items = schema.read(questions, schema.ITEMS)
        templates, origins = word(items, shared, more, settings, run.params.seed, by_label, drawn)
        schema.write(origins, schema.PROMPT_ORIGINS, target, provenance)
        schema.write(templates, schema.PROMPTS, prompts, provenance)
