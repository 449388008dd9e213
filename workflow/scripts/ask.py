from kgprobe.job import job
from kgprobe.probes.jobs import stage

with job(snakemake) as run:
    stage.ask(run)
