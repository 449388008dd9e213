# probes: prompts that are searched or trained with a model, and the answers of models.
# Needs <results>/benchmarks/{benchmark}/, <results>/models/ and config/models.tsv; makes
# <results>/{scores,fills,choices,ranks,outcomes,sweeps,prompts}/.


# one job for all of them: each takes less time than a job's start
rule word_prompts:
    input:
        questions=files_of(ASKED_ATTRIBUTES, "items"),
        templates=ATTRIBUTE_GRAPH.templates or "<resources>/templates/templates.tsv",
        tables=files(SETTINGS.attribute_prompts.tables),
        properties=[] if ATTRIBUTE_GRAPH.section else ATTRIBUTE_GRAPH.properties,
        synonyms=(
            "<resources>/templates/synonyms.tsv"
            if SETTINGS.attribute_prompts.synonyms
            else []
        ),
    output:
        prompts=files_of(ASKED_ATTRIBUTES, "prompts"),
        origins=files_of(ASKED_ATTRIBUTES, "prompt_origins"),
    log:
        "<logs>/benchmarks/attribute_prompts.log",
    priority: FIRST
    threads: 1
    params:
        code=code("word_prompts"),
        # tables read the others
        settings=without(
            SETTINGS.attribute_prompts, "match", "ambiguous_denominator", "intersect"
        ),
        section=ATTRIBUTE_GRAPH.section,
        seed=SETTINGS.seed,
    script:
        "../scripts/word_prompts.py"


# one job per model and stage: loading a model takes longer than most of its probes
for (stage, model), stage_parts in parts.stages(RUN).items():

    rule:
        name:
            f"{stage}_{model}"
        input:
            asked=parts.inputs_of(stage_parts),
            weights=models.weights(RUN, model),
        output:
            [
                p if p.endswith(".parquet") else directory(p)
                for p in parts.outputs_of(stage_parts)
            ],
        log:
            f"<logs>/{stage}/{model}.log",
        priority: SECOND if stage == "prompts" or RUN.models[model]["kind"] == "masked" else THIRD
        # sentences only: one process per thread, and one device per process if there are several
        # (`--set-threads probes_gpt2=4`). Each process has one thread, so that the last bits do
        # not depend on the number of cores
        threads: models.threads_of(RUN, stage, model)
        resources:
            gpu=models.accelerators(RUN, model),
            api=int(RUN.models[model]["kind"] == "api"),
            mem_mb=models.memory_of(RUN, stage_parts, model),
            # minutes on a cluster; finished answers are kept
            runtime=720,
        params:
            code=codes("ask", "probes/jobs/methods", [p.method for p in stage_parts]),
            model=models.of_model(RUN, model),
            server=models.server_url(RUN, model),
            asked=parts.plain(RUN, stage_parts),
            # answers by content: runs share them, and a stopped job resumes from them
            kept=f"{SETTINGS.data}/answers",
        script:
            "../scripts/ask.py"
