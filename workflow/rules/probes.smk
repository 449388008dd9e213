# probes: prompts that are searched or trained with a model, and what models answer.
# Needs <results>/benchmarks/{benchmark}/, <results>/models/ and config/models.tsv; makes
# <results>/{scores,fills,choices,ranks,outcomes,sweeps,prompts}/.

#: columns of models.tsv that a score depends on
OF_MODEL = ["model", "kind", "source", "revision", "dtype", "bos"]
OF_MODEL += ["quantised", "adapter", "device_map"]


# one job for all of them: each is done in less time than it takes to start
rule word_prompts:
    input:
        questions=expand(
            "<results>/benchmarks/{attribute}/items.parquet", attribute=attributes()
        ),
        templates=attribute_worded() or "<resources>/templates/templates.tsv",
        tables=files(SETTINGS.wording.tables),
        properties=[] if own_ids() else attribute_properties(),
        synonyms=(
            "<resources>/templates/synonyms.tsv" if SETTINGS.wording.synonyms else []
        ),
        pararel=pararel(),
    output:
        prompts=expand(
            "<results>/benchmarks/{attribute}/prompts.parquet", attribute=attributes()
        ),
        wordings=expand(
            "<results>/benchmarks/{attribute}/wordings.parquet", attribute=attributes()
        ),
    log:
        "<logs>/benchmarks/attribute_prompts.log",
    priority: FIRST
    threads: 1
    params:
        code=code("word_prompts"),
        settings=asdict(SETTINGS.wording),
        section=attribute_section(),
        seed=SETTINGS.seed,
    script:
        "../scripts/word_prompts.py"


# one job a model and stage: loading it takes longer than most of what it is asked
for (stage, model), asked in stages().items():

    rule:
        name:
            f"{stage}_{model}"
        input:
            asked=paths_of(asked, "input"),
            weights=weights(model),
        output:
            paths_of(asked, "output"),
        log:
            f"<logs>/{stage}/{model}.log",
        priority: SECOND if stage == "prompts" else THIRD
        # a process a thread, and a device a process where there are several, for whole sentences
        # alone (`--set-threads probes_gpt2=4`). Each works with one thread, so that the last bits
        # do not depend on the number of cores
        threads: threads_of(stage, model)
        resources:
            gpu=accelerators(SimpleNamespace(model=model)),
            api=int(MODELS[model]["kind"] == "api"),
            mem_mb=memory_of(asked, model),
            # minutes on a cluster; what is finished until then is kept
            runtime=720,
        params:
            code=codes("ask", asked),
            model=of_model(SimpleNamespace(model=model)),
            asked=plain(asked),
            # answers by content; runs share them, and what a stop leaves is taken up
            kept=f"{SETTINGS.data}/answers",
        script:
            "../scripts/ask.py"
