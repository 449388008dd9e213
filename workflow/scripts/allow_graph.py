from dataclasses import asdict, replace

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import allowed
from kgprobe.benchmarks.bear import build as bear
from kgprobe.benchmarks.ontoprobe import modes, own
from kgprobe.job import job
from kgprobe.knowledge import ontology
from kgprobe.settings import Bear, Ontoprobe, typed
from kgprobe.sheets import manual_templates, read_table

with job(snakemake) as run:
    name = run.wildcards.graph
    facts = schema.read(run.input.facts, schema.STATEMENTS)
    chosen = typed(Ontoprobe, run.params.ontoprobe)
    switches = modes.resolve(chosen.mode, chosen.switches)
    contracts = {
        "classes": ontology.CLASSES,
        "class_chains": ontology.CHAINS,
        "instances": ontology.INSTANCES,
        "properties": ontology.PROPERTIES,
        "property_chains": ontology.CHAINS,
    }

    def sets() -> str:
        made = bear.build(
            facts,
            read_table(run.input.relations),
            manual_templates(read_table(run.input.templates)),
            {},
            typed(Bear, run.params.construction),
            name,
        )
        relations = made.big.items["relation"].n_unique()
        return f"{relations} relations, {made.big.items.height:,} questions"

    def tasks() -> str:
        frames = (
            schema.read(run.input[table], replace(contract, may_be_empty=True))
            for table, contract in contracts.items()
        )
        tables = own.Tables(*frames, own.popularity(facts))
        patterns = read_table(run.input.patterns)
        most = run.params.properties
        taken = own.take(tables, patterns, switches, run.params.seed, most, partly=True)
        counts = pl.Series([row.task for row in taken.rows]).value_counts(sort=True).rows()
        return ", ".join(f"{task} {n:,}" for task, n in sorted(counts))

    rows = [
        allowed.tried(f"{name}_big", sets),
        allowed.tried(f"onto_{name}", tasks),
    ]
    found = pl.DataFrame([asdict(row) for row in rows], schema=dict(allowed.ALLOWED.columns))
    schema.write(found, allowed.ALLOWED, run.output.table, run.provenance())
    words = {True: "built", False: "not built"}
    lines = [f"{row.benchmark}\t{words[row.built]}\t{row.reason}" for row in rows]
    with schema.atomic(run.output.text) as temporary:
        temporary.write_text("\n".join(["benchmark\tbuilt\treason", *lines, ""]), encoding="utf-8")
