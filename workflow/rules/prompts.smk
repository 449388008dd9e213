# prompts: searched ones, what all prompts answer, and AutoPrompt's tables.
# Needs results/benchmarks/auto_*/{examples.parquet,vocabulary.json,task.json} and the models; makes
# results/prompts/{searched}/{benchmark}/{model}/, results/outcomes/{benchmark}/{family}/{model}.parquet,
# results/sweeps/, and of all of them results/tables/autoprompt.parquet with its views.


rule search_prompts:
    input:
        examples="<results>/benchmarks/{benchmark}/examples.parquet",
        vocabulary="<results>/benchmarks/{benchmark}/vocabulary.json",
        task="<results>/benchmarks/{benchmark}/task.json",
        weights=weights,
    output:
        prompts=directory("<results>/prompts/{searched}/{benchmark}/{model}"),
        outcomes="<results>/outcomes/{benchmark}/{searched}/{model}.parquet",
    log:
        "<logs>/prompts/{searched}/{benchmark}/{model}.log",
    benchmark:
        "<logs>/prompts/{searched}/{benchmark}/{model}.jsonl"
    wildcard_constraints:
        searched="searched(_[a-z0-9]+)?",
    # one thread on a CPU, so that the triggers do not depend on the number of cores
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(),
    params:
        code=code("search_prompts"),
        model=of_model,
        settings=prompt_section,
        mode=SETTINGS.autoprompt.mode,
        seed=SETTINGS.seed,
        # where an unfinished search waits for the run that follows a stop
        states=f"{RESULTS}/shards/prompts/{{searched}}/{{benchmark}}/{{model}}",
    script:
        "../scripts/search_prompts.py"


rule predict:
    input:
        examples="<results>/benchmarks/{benchmark}/examples.parquet",
        vocabulary="<results>/benchmarks/{benchmark}/vocabulary.json",
        task="<results>/benchmarks/{benchmark}/task.json",
        found=found_prompts,
        other=other_prompts,
        wordings=prompt_wordings,
        weights=weights,
    output:
        outcomes="<results>/outcomes/{benchmark}/prompts/{model}.parquet",
    log:
        "<logs>/outcomes/{benchmark}/prompts/{model}.log",
    benchmark:
        "<logs>/outcomes/{benchmark}/prompts/{model}.jsonl"
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(),
    params:
        code=code("predict"),
        model=of_model,
        settings=prompt_section,
        prompts=written_prompts,
        published=lambda w: SETTINGS.autoprompt.published.get(w.model, ""),
        draws=SETTINGS.autoprompt.draws,
        seed=SETTINGS.seed,
    script:
        "../scripts/predict.py"


rule train_baseline:
    input:
        examples="<results>/benchmarks/{benchmark}/examples.parquet",
        vocabulary="<results>/benchmarks/{benchmark}/vocabulary.json",
        task="<results>/benchmarks/{benchmark}/task.json",
        weights=weights,
    output:
        outcomes="<results>/outcomes/{benchmark}/{trained}/{model}.parquet",
    log:
        "<logs>/outcomes/{benchmark}/{trained}/{model}.log",
    benchmark:
        "<logs>/outcomes/{benchmark}/{trained}/{model}.jsonl"
    wildcard_constraints:
        trained="linear_probe|finetuned|continuous|relation_lstm",
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(copies=4, least=6000),
    params:
        code=code("train_baseline"),
        model=of_model,
        settings=prompt_section,
        training=lambda w: getattr(SETTINGS.autoprompt.trained, w.trained),
        seed=SETTINGS.seed,
    script:
        "../scripts/train_baseline.py"


rule sweep:
    input:
        examples="<results>/benchmarks/{benchmark}/examples.parquet",
        vocabulary="<results>/benchmarks/{benchmark}/vocabulary.json",
        task="<results>/benchmarks/{benchmark}/task.json",
        weights=weights,
    output:
        sweep="<results>/sweeps/{sweep}/{benchmark}/{prompt}/{model}.parquet",
    log:
        "<logs>/sweeps/{sweep}/{benchmark}/{prompt}/{model}.log",
    benchmark:
        "<logs>/sweeps/{sweep}/{benchmark}/{prompt}/{model}.jsonl"
    wildcard_constraints:
        sweep="low_data|grid",
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(copies=4, least=6000),
    params:
        code=code("sweep"),
        model=of_model,
        settings=prompt_sweep,
        mode=SETTINGS.autoprompt.mode,
        seed=SETTINGS.seed,
        shards=f"{RESULTS}/shards/sweeps/{{sweep}}/{{benchmark}}/{{prompt}}/{{model}}",
    script:
        "../scripts/sweep.py"


rule tabulate_autoprompt:
    input:
        outcomes=list(dict.fromkeys(predicted())),
        tasks=[
            f"<results>/benchmarks/{benchmark}/{name}"
            for benchmark in probed("autoprompt")
            for name in ("examples.parquet", "task.json", "funnel.parquet")
        ],
        prompts=searched_folders(),
        sweeps=[sweep_of(row) for row in sweep_rows()],
        taught=(
            "<results>/models/taught.parquet"
            if "auto_world" in probed("autoprompt")
            else []
        ),
        published="<resources>/published/autoprompt_facts.tsv",
    output:
        results="<results>/tables/autoprompt.parquet",
        tables=report(
            directory("<results>/tables/autoprompt"),
            patterns=["{table}.tsv"],
            caption="../report/autoprompt_tables.rst",
            category="Searched prompts",
            labels={"table": "{table}"},
        ),
        chapter="<results>/report/chapters/autoprompt.json",
    log:
        "<logs>/tables/autoprompt.log",
    benchmark:
        "<logs>/tables/autoprompt.jsonl"
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("tabulate_autoprompt"),
        rows=by_method("predict", "autoprompt"),
        outcomes=[path.replace("<results>", RESULTS) for path in predicted()],
        swept=sweep_rows(),
        models=MODELS,
        settings={
            "mode": SETTINGS.autoprompt.mode,
            "given": [
                prompt_settings.section(
                    asdict(SETTINGS.autoprompt), row["benchmark"], row["model"]
                )
                for row in by_method("predict", "autoprompt")
            ],
            "selection": prompt_settings.point(
                "selection",
                SETTINGS.autoprompt.low_data.selection,
                SETTINGS.autoprompt.mode,
            ),
        },
        seed=SETTINGS.seed,
    script:
        "../scripts/tabulate_autoprompt.py"
