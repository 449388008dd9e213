from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import facts as prompt_facts
from kgprobe.benchmarks.autoprompt import frames
from kgprobe.benchmarks.autoprompt import own as prompt_own
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.knowledge import facts as knowledge
from kgprobe.settings.benchmarks import PromptFacts
from kgprobe.settings.types import typed

VARIANTS = {"auto_lama": "original", "auto_lama_trex": "trex", "auto_lama_roberta": "roberta"}

with job(snakemake) as run:
    settings, seed = typed(PromptFacts, run.params.settings), run.params.seed
    name = run.wildcards.facts_task
    variant, funnel = VARIANTS[name], Funnel(name)
    words = prompt_facts.read_vocabulary(Path(run.input.words[0]))
    facts = prompt_facts.read_facts(Path(run.input.facts[0]), settings.relations)
    relations = facts["group"].unique(maintain_order=True).to_list()
    if settings.search == "pulls":
        statements = schema.read(run.input.wikidata, schema.STATEMENTS)
        test = facts.filter(split="test") if variant != "trex" else facts.clear()
        searched = prompt_own.collect(
            relations,
            test,
            schema.read(run.input.trex, schema.FACTS),
            knowledge.of_statements(statements),
            prompt_own.with_page(statements),
            set(words),
            settings.most,
            variant,
            seed,
            funnel,
        )
        facts = pl.concat([test, searched])
    keep, reason = set(words) if variant == "roberta" else None, "object in the vocabulary"
    if run.params.models:
        from kgprobe.probes.models.load import ModelSpec
        from kgprobe.probes.text.prompts import single_for

        specs = [ModelSpec(**model) for model in run.params.models]
        words = single_for(specs, words)
        keep, reason = set(words), "object one token for " + ", ".join(s.model for s in specs)
    published = prompt_facts.read_published(Path(run.input.manual[0]).parent)
    template_rows, triggers = read_table(run.input.templates), run.params.triggers
    task = prompt_facts.describe(name, "facts", relations, published, template_rows, triggers)
    built = prompt_facts.build(facts, words, task, settings, keep, reason, funnel)
    given = run.provenance(**dict(run.params.items()))
    frames.write(built, Path(run.output.examples).parent, given)
