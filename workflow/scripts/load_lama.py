from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear import lama
from kgprobe.benchmarks.bear.build import RELATIONS
from kgprobe.job import job
from kgprobe.settings.benchmarks import LamaOptions
from kgprobe.settings.types import typed

with job(snakemake) as run:
    settings = typed(LamaOptions, run.params.settings)
    folder, templates = Path(run.input.facts[0]), Path(run.input.manual[0])
    sets = lama.load(folder, templates, settings, run.params.seed)
    provenance = run.provenance()
    sets.write(dict(run.output.items()), provenance)
    schema.write(lama.relations(templates, sets), RELATIONS, run.output.relations, provenance)
