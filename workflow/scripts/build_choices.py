from dataclasses import replace

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import choices
from kgprobe.job import job

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    phrasing = run.params.switches["mc_phrasing"]
    questions = choices.memorizing(
        items,
        candidates,
        schema.read(run.input.prompts, schema.PROMPTS),
        seed=run.params.seed,
        size=run.params.options,
        negatives=run.params.switches["negatives"],
        most=run.params.most,
        phrasing=phrasing,
    )
    # a graph that supports only TP has no rules
    rules = schema.read(run.input.reasoning, replace(schema.ITEMS, may_be_empty=True))
    built = choices.reasoning(rules, questions, items, phrasing=phrasing, candidates=candidates)
    both = pl.concat([questions, built])
    schema.write(both, schema.CHOICES, run.output.choices, run.provenance(seed=run.params.seed))
