from kgprobe import schema
from kgprobe.job import job, progress
from kgprobe.probes.fills import answerer, fill_frame
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.wordings import for_api

with job(snakemake) as run:
    items = schema.read(run.input.questions, schema.ITEMS)
    candidates = schema.read(run.input.candidates, schema.CANDIDATES)
    prompts = schema.read(run.input.prompts, schema.PROMPTS)
    if run.params.few:
        prompts = for_api(prompts, run.params.few, run.params.seed)
    # limits, prices and cache change no answer: they are no parameters
    model = answerer(ModelSpec(**run.params.model), run.config["api"])
    settings = {**run.params.settings, "workers": run.config["api"]["workers"]}
    fills, golds, record = fill_frame(model, items, candidates, prompts, settings, progress)
    run.note(api=record.pop("api", None))
    provenance = run.provenance(model=record)
    schema.write(golds, schema.FILL_GOLDS, run.output.golds, provenance)
    schema.write(fills, schema.FILLS, run.output.fills, provenance)
