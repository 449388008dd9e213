from pathlib import Path

from kgprobe.benchmarks.autoprompt import facts, frames, relations
from kgprobe.experiments import read_table
from kgprobe.job import job
from kgprobe.settings.benchmarks import PromptSentences
from kgprobe.settings.types import typed

with job(snakemake) as run:
    settings, seed = typed(PromptSentences, run.params.settings), run.params.seed
    name = run.wildcards.re_task
    records = relations.read_records(Path(run.input.records[0]), settings.exclude)
    task = facts.describe(
        name,
        "relation_extraction",
        {record.relation for record in records},
        facts.read_published(Path(run.input.manual[0]).parent),
        read_table(run.input.templates),
        run.params.triggers,
    )
    words = facts.read_vocabulary(Path(run.input.words[0]))
    perturbed = settings.perturbed if name == "auto_re_perturbed" else ""
    built = relations.build(records, words, task, settings, seed, perturbed)
    given = run.provenance(**dict(run.params.items()))
    frames.write(built, Path(run.output.examples).parent, given)
