# Questions and runs in the formats of others, made when they are asked for by name:
#   snakemake --cores 2 --configfile CONFIG -- results/NAME/exports/lm-eval/world_lite
# Needs results/benchmarks/ (ro-crate: a finished run); makes results/exports/FORMAT/NAME/.


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
        form="lm-pub-quiz|lm-eval|huggingface|croissant|frictionless",
    threads: 1
    params:
        code=code("export"),
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
