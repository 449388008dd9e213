from dataclasses import asdict, replace
from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import build, modes, own, reasoning, released
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.knowledge import ontology as built
from kgprobe.settings.probes import Ontoprobe
from kgprobe.settings.types import typed

with job(snakemake) as run:
    chosen = typed(Ontoprobe, run.params.settings)
    switches = modes.resolve(chosen.mode, chosen.switches)
    name = Path(run.output.questions).parent.name
    if run.input.get("released"):
        concept_rows = released.take(Path(run.input.released[0]).parent, switches)
    else:
        partly = run.params.partly
        frames = (
            schema.read(run.input[table], replace(contract, may_be_empty=partly))
            for table, contract in built.TABLES.items()
        )
        concept_rows = own.take(
            built.OntologyTables(*frames),
            own.popularity(schema.read(run.input.statements, schema.STATEMENTS)),
            read_table(run.input.patterns),
            switches,
            run.params.seed,
            run.params.properties,
            partly,
        )
    sets = build.build(concept_rows, switches, name)
    rules = reasoning.build(concept_rows, sets.items, sets.candidates, switches)
    sets = replace(sets, rules=rules)
    options, templates = chosen.lite_options, chosen.lite_templates
    rows = run.params.rule_rows
    few = build.lite(sets, chosen.lite, options, run.params.seed, templates, rows)
    languages = run.params.get("languages", [])
    provenance = run.provenance(mode=chosen.mode, switches=asdict(switches), languages=languages)
    some_rules = replace(schema.ITEMS, may_be_empty=bool(run.params.get("partly")))
    schema.write(sets.funnel, schema.FUNNEL, run.output.funnel, provenance)
    for prefix, frames in (("", sets), ("lite_", few)):
        schema.write(frames.items, schema.ITEMS, run.output[f"{prefix}questions"], provenance)
        path = run.output[f"{prefix}candidates"]
        schema.write(frames.candidates, schema.CANDIDATES, path, provenance)
        schema.write(frames.prompts, schema.PROMPTS, run.output[f"{prefix}prompts"], provenance)
        schema.write(frames.rules, some_rules, run.output[f"{prefix}reasoning"], provenance)
