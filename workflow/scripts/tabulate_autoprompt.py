from kgprobe.job import job
from kgprobe.tables.autoprompt import make

with job(snakemake) as run:
    make.tabulate(run)
