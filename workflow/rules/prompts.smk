# prompts: AutoPrompt's tables.
# Needs <results>/{outcomes,prompts,sweeps}/ and <results>/benchmarks/auto_*/; makes
# <results>/tables/autoprompt.parquet with its views, and a section.

PREDICTED = RUN.probes("autoprompt", "predict")
SWEPT = [*RUN.probes("autoprompt", "low_data"), *RUN.probes("autoprompt", "grid")]


rule tabulate_autoprompt:
    input:
        outcomes=list(dict.fromkeys(answers_of(PREDICTED))),
        tasks=[
            f"<results>/benchmarks/{benchmark}/{name}"
            for benchmark in RUN.probed("autoprompt")
            for name in ("examples.parquet", "task.json", "funnel.parquet")
        ],
        baselines=answers_of(baseline_rows(RUN, PREDICTED)),
        prompts=answers_of(PREDICTED, "prompts"),
        sweeps=answers_of(SWEPT),
        trained_on=(
            "<resources>/control/facts.parquet"
            if "auto_world" in RUN.probed("autoprompt")
            else []
        ),
        published=[
            "<resources>/published/autoprompt_facts.tsv",
            "<resources>/published/autoprompt_inference.tsv",
            "<resources>/published/autoprompt_relation_extraction.tsv",
            "<resources>/published/autoprompt_relations.tsv",
            "<resources>/published/autoprompt_sentiment.tsv",
        ],
    output:
        results="<results>/tables/autoprompt.parquet",
        judged="<results>/judged/autoprompt.parquet",
        tables=directory("<results>/tables/autoprompt"),
        section="<results>/report/sections/autoprompt.json",
    log:
        "<logs>/tables/autoprompt.log",
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("tabulate_autoprompt"),
        rows=PREDICTED,
        baselines=baseline_rows(RUN, PREDICTED),
        outcomes=[p.replace("<results>", RESULTS) for p in answers_of(PREDICTED)],
        swept=SWEPT,
        models=RUN.models,
        settings={
            "mode": SETTINGS.autoprompt.mode,
            "given": [
                prompt_settings.section(
                    asdict(SETTINGS.autoprompt), row["benchmark"], row["model"]
                )
                for row in PREDICTED
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
