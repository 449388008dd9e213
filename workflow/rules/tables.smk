# tables: numbers, figures, report.
# Needs results/scores/ and results/benchmarks/; makes results/tables/, results/report/ and
# results/manifest.tsv.


rule manifest:
    input:
        report="results/report/index.html",
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
