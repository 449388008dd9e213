from kgprobe import schema
from kgprobe.benchmarks import own_words
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.settings.sources import OwnGraph
from kgprobe.settings.types import typed
from kgprobe.sources.graphs import read

with job(snakemake) as run:
    section = typed(OwnGraph, run.params.settings)
    facts = schema.read(run.input.statements, schema.STATEMENTS)
    known = schema.read(run.input.properties, read.PROPERTIES)
    labels = dict(known.select("property", "label").rows())
    given = [*schema.read(run.input.given, read.TEMPLATES).iter_rows(named=True)]
    template_rows = [r for t in run.input.own for r in own_words.read_templates(t, labels)]
    written = {row["relation"] for row in template_rows}
    template_rows += [row for row in given if row["relation"] not in written]
    worded = own_words.templates(labels, section, template_rows, read_table(run.input.templates))
    tables = {
        "relations": own_words.relations(facts, labels, section, read_table(run.input.relations)),
        "templates": worded,
        "patterns": own_words.patterns(worded, labels),
    }
    for name, rows in tables.items():
        with schema.atomic(run.output[name]) as temporary:
            columns = own_words.COLUMNS[name]
            temporary.write_text(own_words.table(rows, columns), encoding="utf-8")
