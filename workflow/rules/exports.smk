# Questions in the formats of other programs, made when requested by name:
#   snakemake --cores 2 --configfile CONFIG -- results/NAME/exports/lm-eval/world_lite
#   snakemake --cores 2 --configfile CONFIG -- results/NAME/exports/lm-eval-choices/onto_world
# Needs <results>/benchmarks/; makes <results>/exports/FORMAT/NAME/.

#: formats of whole sentences
FORMS = "lm-pub-quiz|lm-eval|huggingface"


rule export:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts="<results>/benchmarks/{benchmark}/prompts.parquet",
        # for relation_info.json of lm-pub-quiz
        relations=lambda w: (
            files_of([w.benchmark], "relations")
            if RUN.benchmarks[w.benchmark].paper == "bear"
            else []
        ),
    output:
        folder=directory("<results>/exports/{form}/{benchmark}"),
    log:
        "<logs>/exports/{form}/{benchmark}.log",
    wildcard_constraints:
        form=FORMS,
    threads: 1
    params:
        code=code("export"),
        kind="sentences",
    script:
        "../scripts/export.py"


# OntoProbe's multiple choice
rule export_choices:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts="<results>/benchmarks/{benchmark}/prompts.parquet",
        asked="<results>/benchmarks/{benchmark}/choices.parquet",
    output:
        folder=directory("<results>/exports/{form}-choices/{benchmark}"),
    log:
        "<logs>/exports/{form}-choices/{benchmark}.log",
    wildcard_constraints:
        form=FORMS,
    threads: 1
    params:
        code=code("export"),
        kind="choices",
    script:
        "../scripts/export.py"
