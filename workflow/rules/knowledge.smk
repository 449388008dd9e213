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


rule trex_facts:
    input:
        triples="results/sources/trex/triples.parquet",
        labels="results/sources/trex/labels.parquet",
        code=code("knowledge/trex_facts"),
    output:
        facts="results/knowledge/trex/facts.parquet",
    log:
        "logs/knowledge/trex/facts.log",
    benchmark:
        "logs/knowledge/trex/facts.jsonl"
    threads: 1
    script:
        "../scripts/trex_facts.py"
