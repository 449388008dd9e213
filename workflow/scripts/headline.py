from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.tables import results
from kgprobe.tables.report import headline

with job(snakemake) as run, atomic(run.output.text) as temporary:
    temporary.write_text(headline.text(results.read(run.input.results)), encoding="utf-8")
