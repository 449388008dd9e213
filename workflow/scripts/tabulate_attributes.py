from kgprobe.job import job
from kgprobe.tables.attributes import make

with job(snakemake) as run:
    make.tabulate(run)
