import json
import shutil
from pathlib import Path

from kgprobe import schema
from kgprobe.job import job, log, progress
from kgprobe.probes.jobs.fill import answerer, fill_frame
from kgprobe.probes.jobs.word import for_api
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings import Api, Fill, typed

with job(snakemake) as run:
    model, shards, made = None, Path(run.params.shards), []
    # limits, prices and cache change no answer: they are no parameters
    settings, api = typed(Fill, run.params.settings), typed(Api, run.config["api"])
    for number, (benchmark, prompt) in enumerate(run.params.asked):
        files = [run.input[kind][number] for kind in ("questions", "candidates", "prompts")]
        few, seed = run.params.few[number], run.params.seed
        told = run.provenance(
            [*files, *run.input.weights],
            wildcards={
                "benchmark": benchmark,
                "model": run.params.model["model"],
                "prompt": prompt,
            },
            asked={
                "model": run.params.model,
                "settings": run.params.settings,
                "few": few,
                "seed": seed,
            },
        )
        parts = [shards / f"{number}.{kind}.parquet" for kind in ("golds", "fills")]
        made += zip(parts, (run.output.golds[number], run.output.fills[number]), strict=True)
        # what a stopped run has finished is taken up where everything that it hangs on is the same
        known = schema.provenance(parts[1]) if all(p.is_file() for p in parts) else {}
        if {key: known.get(key) for key in told} == json.loads(json.dumps(told)):
            log.info("%s is finished already", benchmark)
            continue
        log.info("%s", benchmark)
        items = schema.read(files[0], schema.ITEMS)
        candidates = schema.read(files[1], schema.CANDIDATES)
        prompts = schema.read(files[2], schema.PROMPTS)
        if few:
            prompts = for_api(prompts, few, seed)
        model = model or answerer(ModelSpec(**run.params.model), api)
        fills, golds, record = fill_frame(
            model, items, candidates, prompts, settings, progress, api.workers
        )
        run.note(api=record.pop("api", None))
        schema.write(golds, schema.FILL_GOLDS, parts[0], {**told, "model": record})
        schema.write(fills, schema.FILLS, parts[1], {**told, "model": record})
    for part, path in made:
        shutil.move(part, path)
    shutil.rmtree(shards, ignore_errors=True)
