from pathlib import Path

from kgprobe.benchmarks.autoprompt import classes, frames
from kgprobe.job import job
from kgprobe.settings.benchmarks import PromptClasses
from kgprobe.settings.types import typed

with job(snakemake) as run:
    name, folder = run.wildcards.classes, Path(run.input.texts[0]).parent
    read = classes.read_sst2 if name == "sst2" else classes.read_sick
    examples = read(folder)
    settings, seed = typed(PromptClasses, run.params.settings), run.params.seed
    task = classes.build(examples, name, settings, run.params.triggers, seed)
    given = run.provenance(**dict(run.params.items()))
    frames.write(task, Path(run.output.examples).parent, given)
