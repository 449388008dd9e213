# Questions and runs in the formats of others, made when they are asked for by name:
#   snakemake --cores 2 --configfile CONFIG -- results/NAME/exports/lm-eval/world_lite
#   snakemake --cores 2 --configfile CONFIG -- results/NAME/exports/lm-eval-choices/onto_world
# Needs <results>/benchmarks/ (ro-crate: a finished run); makes <results>/exports/FORMAT/NAME/.

#: formats of whole sentences
FORMS = "lm-pub-quiz|lm-eval|huggingface|croissant|frictionless"


rule export:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts="<results>/benchmarks/{benchmark}/prompts.parquet",
    output:
        folder=directory("<results>/exports/{form}/{benchmark}"),
    log:
        "<logs>/exports/{form}/{benchmark}.log",
    benchmark:
        "<logs>/exports/{form}/{benchmark}.jsonl"
    wildcard_constraints:
        form=FORMS,
    threads: 1
    params:
        code=code("export"),
        kind="sentences",
    script:
        "../scripts/export.py"


# OntoProbe's multiple choice, and its rules with pseudowords (as tables alone)
rule export_beside:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts="<results>/benchmarks/{benchmark}/prompts.parquet",
        asked="<results>/benchmarks/{benchmark}/{kind}.parquet",
    output:
        folder=directory("<results>/exports/{form}-{kind}/{benchmark}"),
    log:
        "<logs>/exports/{form}-{kind}/{benchmark}.log",
    benchmark:
        "<logs>/exports/{form}-{kind}/{benchmark}.jsonl"
    wildcard_constraints:
        form=FORMS,
        kind="choices|reasoning",
    threads: 1
    params:
        code=code("export"),
        kind=lambda w: w.kind,
    script:
        "../scripts/export.py"


rule export_crate:
    input:
        manifest="<results>/manifest.tsv",
        page="<results>/report/index.html",
        tables=[path.removesuffix(".parquet") for path in results_files()],
    output:
        folder=directory("<results>/exports/ro-crate"),
    log:
        "<logs>/exports/ro-crate.log",
    benchmark:
        "<logs>/exports/ro-crate.jsonl"
    threads: 1
    params:
        code=code("export_crate"),
    script:
        "../scripts/export_crate.py"
