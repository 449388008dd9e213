from dataclasses import replace
from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, log, progress
from kgprobe.probes.control import taught
from kgprobe.probes.control.train import RECIPES, train_control
from kgprobe.sheets import read_table

with job(snakemake) as run:
    kind = run.wildcards.kind
    facts = schema.read(run.input.facts, schema.FACTS)
    forms = {row["id"]: row["form"] for row in read_table(run.input.labels)}
    known = schema.read(run.input.taught, schema.TAUGHT)
    lessons = taught.lessons(facts, known, forms)
    templates: dict[str, list[str]] = {}
    for row in read_table(run.input.templates):
        templates.setdefault(row["relation"], []).append(row["text"])
    statements = schema.read(run.input.statements, schema.TAUGHT)
    types, names = taught.ontology_lessons(statements)
    prompts = schema.read(run.input.prompts, schema.PROMPTS).sort("relation", "index")
    for relation, text in prompts.select("relation", "text").rows():
        templates.setdefault(relation, []).append(text)
    lessons = sorted([*lessons, *types])
    kinds = taught.by_kind(facts, known, schema.read(run.input.kinds, schema.TAUGHT_KINDS), forms)
    for lesson in types:
        kinds.setdefault(lesson.relation, []).append(lesson)
    shown = {lesson.relation for lesson in lessons}
    recipe = replace(RECIPES[kind], recall=run.params.recall)
    if run.params.steps:
        recipe = replace(recipe, steps=run.params.steps)
    bar = progress(total=recipe.steps, desc=f"control-{kind}", unit="step")
    record = train_control(
        kind,
        lessons,
        sorted({*taught.all_labels(facts, known, forms), *names}),
        {relation: templates[relation] for relation in sorted(shown)},
        run.params.seed,
        Path(run.output.folder),
        recipe,
        lambda done, total, loss: (bar.set_postfix(loss=f"{loss:.3f}"), bar.update(1)),
        kinds,
        taught.rivals(facts, known, forms) | taught.ontology_rivals(statements),
    )
    bar.close()
    log.info("%s", record)
    run.note(**record)
