# prompts: searched ones, what all prompts answer, and AutoPrompt's tables.
# Needs results/benchmarks/auto_*/{examples.parquet,vocabulary.json,task.json} and the models; makes
# results/prompts/{searched}/{benchmark}/{model}/, results/outcomes/{benchmark}/{family}/{model}.parquet,
# results/sweeps/ and results/tables/autoprompt/.

#: modules that read a prompt and what a model answers
READING = [
    "metrics/prompts",
    "probes/models/batching",
    "probes/models/causal",
    "probes/models/checks",
    "probes/models/head",
    "probes/models/last_layer",
    "probes/models/load",
    "probes/models/masked",
    "probes/models/predict",
    "probes/models/trie",
    "probes/prompt_tasks",
    "probes/prompted",
    "probes/prompts/answer_options",
    "probes/prompts/answer_phrases",
    "probes/prompts/templates",
    "probes/prompts/trigger_files",
    "probes/prompts/trigger_labels",
    "probes/prompts/trigger_pieces",
    "probes/prompts/trigger_template",
    "probes/prompts/triggers",
    "probes/scoring/encode",
    "probes/scoring/gap_text",
]
#: modules that a search depends on besides
SEARCHING = [
    "probes/prompts/slots",
    "probes/models/reinitialised",
    "probes/prompts/autoprompt",
    "probes/prompts/balance",
    "probes/prompts/label_tokens",
    "probes/prompts/trigger_candidates",
    "probes/prompts/trigger_data",
    "probes/prompts/trigger_filters",
    "probes/prompts/trigger_result",
    "probes/prompts/trigger_scores",
    "probes/prompts/trigger_settings",
    "probes/prompts/trigger_state",
    "probes/searched",
]
#: modules of the baselines that are trained
TRAINING = [
    "probes/baselines/classified",
    "probes/baselines/finetune",
    "probes/baselines/linear_probe",
    "probes/baselines/optiprompt",
    "probes/baselines/ranked",
    "probes/baselines/relation_graph",
    "probes/baselines/relation_lstm",
    "probes/baselines/relation_sentences",
    "probes/baselines/steady",
    "probes/models/decoder",
    "probes/models/gaps",
    "probes/prompt_trained",
    "probes/prompts/continuous",
    "probes/prompts/slots",
    "probes/prompts/soft",
    "probes/prompts/word_scores",
    "probes/prompts/wording_sets",
    "probes/scoring/cloze_plan",
    "probes/scoring/differentiable",
]
#: modules of prompts without search or training
WRITTEN = [
    "probes/baselines/majority",
    "probes/baselines/ranked",
    "probes/prompt_answers",
    "probes/prompts/ensembles",
    "probes/prompts/transfer",
    "probes/prompts/trigger_controls",
    "probes/prompts/trigger_filters",
    "probes/prompts/trigger_settings",
    "probes/prompts/word_scores",
    "probes/prompts/wording_sets",
]
#: modules of sweeps beside those of a search
SWEEPING = [
    "probes/baselines/classified",
    "probes/baselines/finetune",
    "probes/baselines/ranked",
    "probes/baselines/steady",
    "probes/models/decoder",
    "probes/models/gaps",
    "probes/prompt_sweeps",
    "probes/prompts/slots",
    "probes/prompts/soft",
    "probes/scoring/cloze_plan",
    "probes/scoring/differentiable",
]


rule search_prompts:
    input:
        examples="results/benchmarks/{benchmark}/examples.parquet",
        vocabulary="results/benchmarks/{benchmark}/vocabulary.json",
        task="results/benchmarks/{benchmark}/task.json",
        weights=weights,
        code=code(*READING, *SEARCHING),
    output:
        prompts=directory("results/prompts/{searched}/{benchmark}/{model}"),
        outcomes="results/outcomes/{benchmark}/{searched}/{model}.parquet",
    log:
        "logs/prompts/{searched}/{benchmark}/{model}.log",
    benchmark:
        "logs/prompts/{searched}/{benchmark}/{model}.jsonl"
    wildcard_constraints:
        searched="searched(_[a-z0-9]+)?",
    # one thread on a CPU, so that the triggers do not depend on the number of cores
    threads: 1
    resources:
        gpu=accelerators(),
        mem_mb=4000,
    params:
        model=of_model,
        settings=prompt_section,
        mode=config["autoprompt"]["mode"],
        seed=config["seed"],
        # where an unfinished search waits for the run that follows a stop
        states="results/shards/prompts/{searched}/{benchmark}/{model}",
    script:
        "../scripts/search_prompts.py"


rule predict:
    input:
        examples="results/benchmarks/{benchmark}/examples.parquet",
        vocabulary="results/benchmarks/{benchmark}/vocabulary.json",
        task="results/benchmarks/{benchmark}/task.json",
        found=found_prompts,
        other=other_prompts,
        wordings=prompt_wordings,
        weights=weights,
        code=code(*READING, *WRITTEN),
    output:
        outcomes="results/outcomes/{benchmark}/prompts/{model}.parquet",
    log:
        "logs/outcomes/{benchmark}/prompts/{model}.log",
    benchmark:
        "logs/outcomes/{benchmark}/prompts/{model}.jsonl"
    threads: 1
    resources:
        gpu=accelerators(),
        mem_mb=4000,
    params:
        model=of_model,
        settings=prompt_section,
        prompts=written_prompts,
        published=lambda w: config["autoprompt"]["published"].get(w.model, ""),
        draws=config["autoprompt"]["draws"],
        seed=config["seed"],
    script:
        "../scripts/predict.py"


rule train_baseline:
    input:
        examples="results/benchmarks/{benchmark}/examples.parquet",
        vocabulary="results/benchmarks/{benchmark}/vocabulary.json",
        task="results/benchmarks/{benchmark}/task.json",
        weights=weights,
        code=code(*READING, *TRAINING),
    output:
        outcomes="results/outcomes/{benchmark}/{trained}/{model}.parquet",
    log:
        "logs/outcomes/{benchmark}/{trained}/{model}.log",
    benchmark:
        "logs/outcomes/{benchmark}/{trained}/{model}.jsonl"
    wildcard_constraints:
        trained="linear_probe|finetuned|continuous|relation_lstm",
    threads: 1
    resources:
        gpu=accelerators(),
        mem_mb=6000,
    params:
        model=of_model,
        settings=prompt_section,
        training=lambda w: config["autoprompt"]["trained"][w.trained],
        seed=config["seed"],
    script:
        "../scripts/train_baseline.py"


rule sweep:
    input:
        examples="results/benchmarks/{benchmark}/examples.parquet",
        vocabulary="results/benchmarks/{benchmark}/vocabulary.json",
        task="results/benchmarks/{benchmark}/task.json",
        weights=weights,
        code=code(*READING, *SEARCHING, *SWEEPING),
    output:
        sweep="results/sweeps/{sweep}/{benchmark}/{prompt}/{model}.parquet",
    log:
        "logs/sweeps/{sweep}/{benchmark}/{prompt}/{model}.log",
    benchmark:
        "logs/sweeps/{sweep}/{benchmark}/{prompt}/{model}.jsonl"
    wildcard_constraints:
        sweep="low_data|grid",
    threads: 1
    resources:
        gpu=accelerators(),
        mem_mb=6000,
    params:
        model=of_model,
        settings=prompt_sweep,
        mode=config["autoprompt"]["mode"],
        seed=config["seed"],
        shards="results/shards/sweeps/{sweep}/{benchmark}/{prompt}/{model}",
    script:
        "../scripts/sweep.py"


rule tabulate_autoprompt:
    input:
        outcomes=list(dict.fromkeys(predicted())),
        tasks=[
            f"results/benchmarks/{benchmark}/{name}"
            for benchmark in probed("autoprompt")
            for name in ("examples.parquet", "task.json", "funnel.parquet")
        ],
        prompts=searched_folders(),
        sweeps=[sweep_of(row) for row in sweep_rows()],
        taught=(
            "results/models/taught.parquet"
            if "auto_world" in probed("autoprompt")
            else []
        ),
        published="resources/published/autoprompt_facts.tsv",
        code=code(
            "metrics/prompts",
            "tables/autoprompt",
            "tables/autoprompt_extraction",
            "tables/autoprompt_gather",
            "tables/autoprompt_make",
            "tables/autoprompt_prompts",
            "tables/autoprompt_published",
            "tables/autoprompt_report",
            "tables/autoprompt_sweeps",
        ),
    output:
        tables=report(
            directory("results/tables/autoprompt"),
            patterns=["{table}.tsv"],
            caption="../report/autoprompt_tables.rst",
            category="Searched prompts",
            labels={"table": "{table}"},
        ),
        chapter="results/report/chapters/autoprompt.json",
    log:
        "logs/tables/autoprompt.log",
    benchmark:
        "logs/tables/autoprompt.jsonl"
    threads: 1
    resources:
        mem_mb=3000,
    params:
        rows=by_method("predict", "autoprompt"),
        outcomes=predicted(),
        swept=sweep_rows(),
        models=MODELS,
        settings={"mode": config["autoprompt"]["mode"]},
        seed=config["seed"],
    script:
        "../scripts/tabulate_autoprompt.py"
