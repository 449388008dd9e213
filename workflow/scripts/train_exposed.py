from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear.exposed import facts
from kgprobe.job import job, log, progress
from kgprobe.probes.control import exposures
from kgprobe.probes.control.train import train_control
from kgprobe.sampling import hash_key

with job(snakemake) as run:
    kind, seed = run.wildcards.kind, hash_key(run.params.seed, run.wildcards.seed) % (1 << 31)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    known = facts(schema.read(run.input.questions, schema.ITEMS), candidates)
    drawn = exposures.draw(known, run.params.counts, seed)
    times = exposures.lessons(known, drawn)
    prompts = schema.read(run.input.prompts, schema.PROMPTS).sort("relation", "index")
    templates: dict[str, list[str]] = {}
    for relation, text in prompts.select("relation", "text").rows():
        templates.setdefault(relation, []).append(text)
    bar = progress(desc=f"exposed-{kind}-{run.wildcards.seed}", unit="step")
    record = train_control(
        kind,
        list(times),
        sorted({*known["subject_label"], *candidates["label"]}),
        templates,
        seed,
        Path(run.output.folder),
        progress=lambda done, total, loss: bar.update(1),
        times=times,
    )
    bar.close()
    found = exposures.counted(known, drawn, record.pop("seen"))
    schema.write(found, schema.EXPOSED, run.output.counted, run.provenance(seed=seed))
    log.info("%s", record)
    run.note(**record)
