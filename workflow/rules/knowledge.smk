# knowledge: what the sources say, as facts.
# Needs results/sources/{source}/facts.parquet; makes results/knowledge/{source}/facts.parquet.


rule facts:
    input:
        statements="results/sources/{source}/facts.parquet",
        code=code("knowledge/facts"),
    output:
        facts="results/knowledge/{source}/facts.parquet",
    log:
        "logs/knowledge/{source}/facts.log",
    benchmark:
        "logs/knowledge/{source}/facts.jsonl"
    threads: 1
    script:
        "../scripts/facts.py"
