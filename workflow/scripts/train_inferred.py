from dataclasses import replace
from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, log, progress
from kgprobe.probes.control.lessons import Lesson
from kgprobe.probes.control.train import RECIPES, train_control
from kgprobe.sampling import hash_key

with job(snakemake) as run:
    kind, count = run.wildcards.kind, int(run.wildcards.shown)
    facts = schema.read(run.input.taught, schema.TAUGHT)
    taught = facts.filter("taught").select("relation", "subject", "object").rows()
    prompts = schema.read(run.input.prompts, schema.PROMPTS)
    lessons = [Lesson(*row) for row in taught]
    bar = progress(desc=Path(run.output.folder).name, unit="step")
    record = train_control(
        kind,
        lessons,
        sorted({*facts["subject"], *facts["object"]}),
        {relation: [text] for relation, text in prompts.select("relation", "text").rows()},
        hash_key(run.params.seed, run.wildcards.seed) % (1 << 31),
        Path(run.output.folder),
        replace(RECIPES[kind], width=int(run.wildcards.width)),
        progress=lambda done, total, loss: bar.update(1),
        times=dict.fromkeys(lessons, count),
    )
    bar.close()
    log.info("%s", record)
    run.note(**record)
