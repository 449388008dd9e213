from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import headline
from kgprobe.tables.table import read_all, write_tsv

with job(snakemake) as run:
    made = headline.build(read_all(run.input.tables))
    schema.write(made, schema.TABLE, run.output.table, run.provenance())
    write_tsv(made, run.output.text)
