from kgprobe import schema
from kgprobe.job import job, log, progress
from kgprobe.probes.fills import answerer, fill_frame
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.wordings import for_api

with job(snakemake) as run:
    # limits, prices and cache change no answer: they are no parameters
    model = answerer(ModelSpec(**run.params.model), run.config["api"])
    settings = {**run.params.settings, "workers": run.config["api"]["workers"]}
    for number, few in enumerate(run.params.few):
        log.info("%s", run.output.fills[number])
        files = [run.input[kind][number] for kind in ("questions", "candidates", "prompts")]
        items = schema.read(files[0], schema.ITEMS)
        candidates = schema.read(files[1], schema.CANDIDATES)
        prompts = schema.read(files[2], schema.PROMPTS)
        if few:
            prompts = for_api(prompts, few, run.params.seed)
        fills, golds, record = fill_frame(model, items, candidates, prompts, settings, progress)
        run.note(api=record.pop("api", None))
        provenance = run.provenance([*files, *run.input.weights], model=record)
        schema.write(golds, schema.FILL_GOLDS, run.output.golds[number], provenance)
        schema.write(fills, schema.FILLS, run.output.fills[number], provenance)
