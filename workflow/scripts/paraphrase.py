from kgprobe.job import job
from kgprobe.probes.jobs.word import freeze
from kgprobe.settings import Paraphraser, typed
from kgprobe.sheets import read_table

with job(snakemake) as run:
    freeze(
        run.output.table,
        read_table(run.input.templates),
        [row for path in run.input.tables for row in read_table(path)],
        typed(Paraphraser, run.params.settings),
        run.params.seed,
    )
