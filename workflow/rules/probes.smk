# probes: what models answer.
# Needs results/benchmarks/{benchmark}/, results/models/ and config/models.tsv; makes
# results/{scores,fills,choices,ranks}/{benchmark}/ and results/prompts/soft/.

FILLS = "<results>/fills/{benchmark}/{prompt}/{model}.parquet"
GOLDS = "<results>/fills/{benchmark}/{prompt}/{model}.golds.parquet"
#: columns of models.tsv that a score depends on
OF_MODEL = ["model", "kind", "source", "revision", "dtype", "bos"]


# one job for all of them: each is done in less time than it takes to start
rule word_prompts:
    input:
        questions=expand(
            "<results>/benchmarks/{attribute}/items.parquet", attribute=attributes()
        ),
        templates="<resources>/templates/templates.tsv",
        tables=files(SETTINGS.wording.tables),
        properties=attribute_properties(),
        wordnet=wordnet(),
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
    benchmark:
        "<logs>/benchmarks/attribute_prompts.jsonl"
    priority: FIRST
    threads: 1
    params:
        code=code("word_prompts"),
        settings=asdict(SETTINGS.wording),
        seed=SETTINGS.seed,
    script:
        "../scripts/word_prompts.py"


rule score:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts="<results>/benchmarks/{benchmark}/prompts.parquet",
        weights=weights,
    output:
        scores="<results>/scores/{benchmark}/{prompt}/{method}/{model}.parquet",
    log:
        "<logs>/scores/{benchmark}/{prompt}/{method}/{model}.log",
    benchmark:
        "<logs>/scores/{benchmark}/{prompt}/{method}/{model}.jsonl"
    priority: THIRD
    # a process a thread, and a device a process where there are several: `--set-threads score=4`.
    # Each works with one thread, so that the last bits do not depend on the number of cores
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(exact=True),
    params:
        code=code("score"),
        # finished parts, taken up by the run that follows a stop
        shards=f"{RESULTS}/shards/{{benchmark}}/{{prompt}}/{{method}}/{{model}}",
        model=of_model,
    script:
        "../scripts/score.py"


# one job a model: loading it takes longer than asking one benchmark
for model, asked in filled().items():
    place = weights(SimpleNamespace(model=model))

    rule:
        name:
            f"fill_{model}"
        input:
            questions=expand(
                "<results>/benchmarks/{benchmark}/items.parquet",
                benchmark=[b for b, _ in asked],
            ),
            candidates=expand(
                "<results>/benchmarks/{benchmark}/candidates.parquet",
                benchmark=[b for b, _ in asked],
            ),
            prompts=expand(
                "<results>/benchmarks/{benchmark}/prompts.parquet",
                benchmark=[b for b, _ in asked],
            ),
            weights=[place] if place else [],
        output:
            fills=[FILLS.format(benchmark=b, prompt=p, model=model) for b, p in asked],
            golds=[GOLDS.format(benchmark=b, prompt=p, model=model) for b, p in asked],
        log:
            f"<logs>/fills/{model}.log",
        benchmark:
            f"<logs>/fills/{model}.jsonl"
        priority: THIRD
        threads: 1
        resources:
            gpu=accelerators(SimpleNamespace(model=model)),
            api=int(MODELS[model]["kind"] == "api"),
            mem_mb=memory()(SimpleNamespace(model=model)),
        params:
            code=code("fill"),
            # finished benchmarks, taken up by the run that follows a stop
            shards=f"{RESULTS}/shards/fills/{model}",
            asked=asked,
            model=of_model(SimpleNamespace(model=model)),
            settings=asdict(SETTINGS.fill),
            few=[
                few_prompts(SimpleNamespace(model=model, benchmark=b))
                for b, _ in asked
            ],
            seed=SETTINGS.seed,
        script:
            "../scripts/fill.py"


rule choose:
    input:
        questions="<results>/benchmarks/{benchmark}/choices.parquet",
        weights=weights,
    output:
        chosen="<results>/choices/{benchmark}/{prompt}/{model}.parquet",
    log:
        "<logs>/choices/{benchmark}/{prompt}/{model}.log",
    benchmark:
        "<logs>/choices/{benchmark}/{prompt}/{model}.jsonl"
    threads: 1
    resources:
        gpu=accelerators,
        api=lambda w: int(MODELS[w.model]["kind"] == "api"),
        mem_mb=memory(),
    params:
        code=code("choose"),
        model=of_model,
        ways=SETTINGS.choice.ways,
    script:
        "../scripts/choose.py"


rule rank:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts="<results>/benchmarks/{benchmark}/prompts.parquet",
        weights=weights,
    output:
        ranks="<results>/ranks/{benchmark}/templates/{model}.parquet",
        top="<results>/ranks/{benchmark}/templates/{model}.top.parquet",
    log:
        "<logs>/ranks/{benchmark}/templates/{model}.log",
    benchmark:
        "<logs>/ranks/{benchmark}/templates/{model}.jsonl"
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(),
    params:
        code=code("rank"),
        model=of_model,
        switches=switches("candidate_space", "unknown_candidates"),
    script:
        "../scripts/rank.py"


rule train_soft:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        weights=weights,
    output:
        prompts=directory("<results>/prompts/soft/{benchmark}/{model}"),
    log:
        "<logs>/prompts/soft/{benchmark}/{model}.log",
    benchmark:
        "<logs>/prompts/soft/{benchmark}/{model}.jsonl"
    # one thread on a CPU, so that the vectors do not depend on the number of cores
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(),
    params:
        code=code("train_soft"),
        model=of_model,
        switches=switches(),
        settings=asdict(SETTINGS.ontoprobe.soft),
    script:
        "../scripts/train_soft.py"


rule rank_soft:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts=rules.train_soft.output.prompts,
        weights=weights,
    output:
        ranks="<results>/ranks/{benchmark}/soft/{model}.parquet",
        curves="<results>/ranks/{benchmark}/soft/{model}.curves.parquet",
    log:
        "<logs>/ranks/{benchmark}/soft/{model}.log",
    benchmark:
        "<logs>/ranks/{benchmark}/soft/{model}.jsonl"
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(),
    params:
        code=code("rank_soft"),
        model=of_model,
        switches=switches(),
        rows=SETTINGS.ontoprobe.soft.rows,
    script:
        "../scripts/rank_soft.py"


rule reason:
    input:
        questions="<results>/benchmarks/{benchmark}/reasoning.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts=prompted,
        weights=weights,
    output:
        ranks="<results>/ranks/{benchmark}/reason/{model}.parquet",
        premises="<results>/ranks/{benchmark}/reason/{model}.premise.parquet",
    log:
        "<logs>/ranks/{benchmark}/reason/{model}.log",
    benchmark:
        "<logs>/ranks/{benchmark}/reason/{model}.jsonl"
    threads: 1
    resources:
        gpu=accelerators,
        mem_mb=memory(),
    params:
        code=code("reason"),
        model=of_model,
        switches=switches(),
        settings=asdict(SETTINGS.ontoprobe.soft),
    script:
        "../scripts/reason.py"
