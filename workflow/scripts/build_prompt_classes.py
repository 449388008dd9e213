from pathlib import Path

from kgprobe.benchmarks import prompt_classes, prompt_frames
from kgprobe.job import job

with job(snakemake) as run:
    name, folder = run.wildcards.classes, Path(run.input.texts[0]).parent
    read = prompt_classes.read_sst2 if name == "sst2" else prompt_classes.read_sick
    examples = read(folder)
    settings, triggers, seed = run.params.settings, run.params.triggers, run.params.seed
    task = prompt_classes.build(examples, name, settings, triggers, seed)
    given = run.provenance(**dict(run.params.items()))
    prompt_frames.write(task, Path(run.output.examples).parent, given)
