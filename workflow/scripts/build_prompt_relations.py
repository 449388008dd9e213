from pathlib import Path

from kgprobe.benchmarks import prompt_facts, prompt_frames, prompt_relations
from kgprobe.job import job
from kgprobe.sheets import read_table

with job(snakemake) as run:
    settings, seed, name = run.params.settings, run.params.seed, run.wildcards.re_task
    records = prompt_relations.read_records(Path(run.input.records[0]), settings["exclude"])
    task = prompt_facts.describe(
        name,
        "relation_extraction",
        {record.relation for record in records},
        prompt_facts.published_wordings(Path(run.input.manual[0]).parent),
        read_table(run.input.templates),
        run.params.triggers,
    )
    words = prompt_facts.read_vocabulary(Path(run.input.words[0]))
    perturbed = settings["perturbed"] if name == "auto_re_perturbed" else ""
    built = prompt_relations.build(records, words, task, settings, seed, perturbed)
    given = run.provenance(**dict(run.params.items()))
    prompt_frames.write(built, Path(run.output.examples).parent, given)
