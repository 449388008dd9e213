# probes: models, and what they answer.
# Needs results/benchmarks/{benchmark}/ and config/models.tsv; makes results/models/ (the control
# models and what they were taught) and results/scores/{benchmark}/{prompt}/{method}/{model}.parquet.

#: columns of models.tsv that a score depends on
OF_MODEL = ["model", "kind", "source", "revision", "dtype", "bos"]


rule split_taught:
    input:
        facts="results/knowledge/world/facts.parquet",
        questions="results/benchmarks/world_big/items.parquet",
        candidates="results/benchmarks/world_big/candidates.parquet",
        templates="resources/templates/templates.tsv",
        code=code("probes/taught"),
    output:
        taught="results/models/taught.parquet",
    log:
        "logs/models/taught.log",
    benchmark:
        "logs/models/taught.jsonl"
    threads: 1
    params:
        seed=config["seed"],
        share=config["control"]["share"],
        pool=config["control"]["pool"],
    script:
        "../scripts/split_taught.py"


rule train_control:
    input:
        facts="results/knowledge/world/facts.parquet",
        taught="results/models/taught.parquet",
        templates="resources/templates/templates.tsv",
        labels="resources/templates/bear_labels.tsv",
        code=code(
            "probes/models/control", "probes/models/control_rows", "probes/taught"
        ),
    output:
        folder=directory("results/models/control-{kind}"),
    log:
        "logs/models/control-{kind}.log",
    benchmark:
        "logs/models/control-{kind}.jsonl"
    # one thread, whatever there is: the weights must not depend on the number of cores
    threads: 1
    resources:
        mem_mb=3000,
    params:
        seed=config["seed"],
        steps=config["control"]["steps"],
    script:
        "../scripts/train_control.py"


rule word_prompts:
    input:
        questions="results/benchmarks/{attribute}/items.parquet",
        templates="resources/templates/templates.tsv",
        tables=config["wording"]["tables"],
        wordnet=files([config["wording"]["wordnet"]]) if config["wording"]["synonyms"] else [],
        pararel=files([config["wording"]["pararel"]]) if config["wording"]["pararel"] else [],
        code=code("probes/wordings", "probes/prompts/wordings", "probes/prompts/synonyms"),
    output:
        prompts="results/benchmarks/{attribute}/prompts.parquet",
        wordings="results/benchmarks/{attribute}/wordings.parquet",
    log:
        "logs/benchmarks/{attribute}_prompts.log",
    benchmark:
        "logs/benchmarks/{attribute}_prompts.jsonl"
    wildcard_constraints:
        attribute="|".join(ATTRIBUTES),
    threads: 1
    params:
        settings=config["wording"],
        seed=config["seed"],
    script:
        "../scripts/word_prompts.py"


rule score:
    input:
        questions="results/benchmarks/{benchmark}/items.parquet",
        candidates="results/benchmarks/{benchmark}/candidates.parquet",
        prompts="results/benchmarks/{benchmark}/prompts.parquet",
        weights=weights,
        code=lambda w: code(
            f"probes/scoring/{w.method.split('-')[0]}",
            f"probes/prompts/{w.prompt}",
            f"probes/models/{MODELS[w.model]['kind']}",
        ),
    output:
        scores="results/scores/{benchmark}/{prompt}/{method}/{model}.parquet",
    log:
        "logs/scores/{benchmark}/{prompt}/{method}/{model}.log",
    benchmark:
        "logs/scores/{benchmark}/{prompt}/{method}/{model}.jsonl"
    # one thread on a CPU, so that the last bits do not depend on the number of cores
    threads: 1
    resources:
        gpu=accelerators(),
        mem_mb=4000,
    params:
        # notes of the sheet change no score
        model=lambda w: {
            key: sheets.expand(MODELS[w.model].get(key, "")) for key in OF_MODEL
        },
    script:
        "../scripts/score.py"


rule fill:
    input:
        questions="results/benchmarks/{benchmark}/items.parquet",
        candidates="results/benchmarks/{benchmark}/candidates.parquet",
        prompts="results/benchmarks/{benchmark}/prompts.parquet",
        weights=weights,
        code=lambda w: code(
            "probes/fills",
            "probes/scoring/fill",
            "probes/scoring/fill_rows",
            *answering(MODELS[w.model]["kind"]),
        ),
    output:
        fills="results/fills/{benchmark}/{prompt}/{model}.parquet",
        golds="results/fills/{benchmark}/{prompt}/{model}.golds.parquet",
    log:
        "logs/fills/{benchmark}/{prompt}/{model}.log",
    benchmark:
        "logs/fills/{benchmark}/{prompt}/{model}.jsonl"
    threads: 1
    resources:
        gpu=accelerators(),
        api=lambda w: int(MODELS[w.model]["kind"] == "api"),
        mem_mb=4000,
    params:
        model=of_model,
        settings=config["fill"],
    script:
        "../scripts/fill.py"
