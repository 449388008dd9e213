from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.choices import choose_frame
from kgprobe.probes.fills import answerer
from kgprobe.probes.models.load import ModelSpec

with job(snakemake) as run:
    questions = schema.read(run.input.questions, schema.CHOICES)
    # limits, prices and cache change no answer: they are no parameters
    api = run.config["api"]
    model = answerer(ModelSpec(**run.params.model), api)
    chosen, record = choose_frame(model, questions, run.params.ways, progress, api["workers"])
    run.note(api=record.pop("api", None))
    schema.write(chosen, schema.CHOSEN, run.output.chosen, run.provenance(model=record))
