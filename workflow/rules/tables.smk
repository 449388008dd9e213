# tables: numbers, figures, report.
# Needs results/scores/, results/benchmarks/ and the published figures; makes results/tables/,
# results/report/ and results/manifest.tsv.


#: the tables that apply to this sheet, and their figures
TABLES = ["headline", "bear_models", "bear_relations", "bear_templates", "bear_size"]
TABLES += ["bear_differences"] if several() else []
TABLES += ["bear_domains"] if any("released" in b for b in probed("bear")) else []
TABLES += ["calibration"] if has_controls() else []
FIGURES = [f"bear_{what}_{b}" for b in probed("bear") for what in ("size", "relations")]
FIGURES += ["calibration"] if has_controls() else []


rule tabulate:
    input:
        scores=score_files(),
        questions=of_benchmarks("items"),
        candidates=of_benchmarks("candidates"),
        prompts=of_benchmarks("prompts"),
        relations=of_benchmarks("relations"),
        taught="results/models/taught.parquet" if has_controls() else [],
        published="resources/published/bear_leaderboard.tsv",
        code=code(
            "tables/gather", "tables/bear", "tables/calibration", "tables/answers"
        ),
    output:
        tables=expand("results/tables/{table}.parquet", table=TABLES),
        texts=report(
            expand("results/tables/{table}.tsv", table=TABLES),
            caption="../report/bear_models.rst",
            category="Tables",
            labels=lambda w, output: {"table": "all tables"},
        ),
    log:
        "logs/tables/tables.log",
    benchmark:
        "logs/tables/tables.jsonl"
    threads: 1
    params:
        experiments=EXPERIMENTS,
        models=MODELS,
        names=TABLES,
        seed=config["seed"],
    script:
        "../scripts/tabulate.py"


rule report:
    input:
        tables=expand("results/tables/{table}.parquet", table=TABLES),
        scores=score_files(),
        questions=of_benchmarks("items"),
        funnels=funnels(),
        names="resources/templates/bear_relations.tsv",
        code=code("tables/report", "tables/draw", "tables/draw_size"),
    output:
        page=report(
            "results/report/index.html",
            caption="../report/report.rst",
            category="Report",
            labels={"page": "the whole report"},
        ),
        figures=[
            report(
                f"results/report/figures/{name}.svg",
                caption=f"../report/{caption}.rst",
                category="Figures",
                labels={"figure": name},
            )
            for name in FIGURES
            for caption in [
                (
                    "relations_plot"
                    if name.startswith("bear_relations")
                    else "bear_size" if name.startswith("bear_size") else name
                )
            ]
        ],
    log:
        "logs/tables/report.log",
    benchmark:
        "logs/tables/report.jsonl"
    threads: 1
    params:
        experiments=EXPERIMENTS,
        models=MODELS,
        seed=config["seed"],
        descriptions=BENCHMARKS,
    script:
        "../scripts/report.py"


rule manifest:
    input:
        page="results/report/index.html",
        code=code("tables/manifest"),
    output:
        manifest="results/manifest.tsv",
    log:
        "logs/tables/manifest.log",
    benchmark:
        "logs/tables/manifest.jsonl"
    threads: 1
    script:
        "../scripts/manifest.py"
