# prompts: AutoPrompt's tables.
# Needs <results>/{outcomes,prompts,sweeps}/ and <results>/benchmarks/auto_*/; makes
# <results>/tables/autoprompt.parquet with its views, and a chapter.


rule tabulate_autoprompt:
    input:
        outcomes=list(dict.fromkeys(predicted())),
        tasks=[
            f"<results>/benchmarks/{benchmark}/{name}"
            for benchmark in probed("autoprompt")
            for name in ("examples.parquet", "task.json", "funnel.parquet")
        ],
        floors=[answers_of(r) for r in floor_rows(by_method("predict", "autoprompt"))],
        prompts=searched_folders(),
        sweeps=[answers_of(row) for row in sweep_rows()],
        taught=(
            "<results>/models/taught.parquet"
            if "auto_world" in probed("autoprompt")
            else []
        ),
        published="<resources>/published/autoprompt_facts.tsv",
    output:
        results="<results>/tables/autoprompt.parquet",
        tables=directory("<results>/tables/autoprompt"),
        chapter="<results>/report/chapters/autoprompt.json",
    log:
        "<logs>/tables/autoprompt.log",
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("tabulate_autoprompt"),
        rows=by_method("predict", "autoprompt"),
        floors=floor_rows(by_method("predict", "autoprompt")),
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
