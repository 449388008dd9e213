from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.jobs.choose import choose_frame
from kgprobe.probes.jobs.fill import answerer
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings import Api, typed

with job(snakemake) as run:
    questions = schema.read(run.input.questions, schema.CHOICES)
    # limits, prices and cache change no answer: they are no parameters
    api = typed(Api, run.config["api"])
    model = answerer(ModelSpec(**run.params.model), api)
    chosen, record = choose_frame(model, questions, run.params.ways, progress, api.workers)
    run.note(api=record.pop("api", None))
    schema.write(chosen, schema.CHOSEN, run.output.chosen, run.provenance(model=record))
