# sources: everything that comes in from outside, as raw tables.
# Needs resources/world, RDF files or endpoints, a folder or zip of T-REx files; makes
# results/sources/world/{wikidata,dbpedia}.nt and trex/, results/sources/{source}/*.parquet,
# and the raw snapshots below the data folder.

#: tables of results/sources/{source}/ and the queries that they are read from
PULLED = {
    "wikidata": [
        "properties",
        "property_hierarchy",
        "constraints",
        "equivalent_property",
        "inverse_property",
        "constraint_class_links",
        "constraint_classes",
    ],
    "dbpedia": [
        "classes",
        "class_hierarchy",
        "class_equivalence",
        "properties",
        "property_hierarchy",
        "property_equivalence",
        "types",
        "instance_counts",
    ],
}


rule render_world:
    input:
        tables=sorted(str(path) for path in Path("resources/world").glob("*.tsv")),
        code=code("sources/world", "sources/world_rdf", "sources/world_trex"),
    output:
        wikidata="results/sources/world/wikidata.nt",
        dbpedia="results/sources/world/dbpedia.nt",
        trex=directory("results/sources/world/trex"),
    log:
        "logs/sources/world.log",
    benchmark:
        "logs/sources/world.jsonl"
    threads: 1
    script:
        "../scripts/render_world.py"


rule pull_facts:
    input:
        rdf=rdf,
        query=lambda w: f"resources/queries/wikidata/{settings(w.source)['statements']}.rq",
        properties="resources/queries/wikidata/properties.rq",
        relations="resources/templates/bear_relations.tsv",
        code=code("sources/access", "sources/statements"),
    output:
        facts="results/sources/{source}/facts.parquet",
    log:
        "logs/sources/{source}/facts.log",
    benchmark:
        "logs/sources/{source}/facts.jsonl"
    wildcard_constraints:
        source="wikidata|world",
    threads: 1
    resources:
        sparql=1,
    params:
        settings=lambda w: settings(w.source),
        data=config["data"],
        contact=config["contact"],
        # of the world everything; of Wikidata what BEAR asks for
        everything=lambda w: w.source == "world",
    script:
        "../scripts/pull_facts.py"


rule pull:
    input:
        rdf=rdf,
        query=lambda w: f"resources/queries/{graph(w.source)}/{w.query}.rq",
        code=code("sources/access", "sources/sparql"),
    output:
        table="results/sources/{source}/{query}.parquet",
    log:
        "logs/sources/{source}/{query}.log",
    benchmark:
        "logs/sources/{source}/{query}.jsonl"
    wildcard_constraints:
        query="|".join(sorted(set(sum(PULLED.values(), [])))),
    threads: 1
    resources:
        sparql=1,
    params:
        settings=lambda w: settings(w.source),
        data=config["data"],
        contact=config["contact"],
    script:
        "../scripts/pull.py"


rule ingest_trex:
    input:
        dump=trex_dump,
        code=code("sources/trex", "sources/trex_repair"),
    output:
        alignments="results/sources/trex/{member}/alignments.parquet",
        triples="results/sources/trex/{member}/triples.parquet",
        mentions="results/sources/trex/{member}/mentions.parquet",
        documents="results/sources/trex/{member}/documents.parquet",
        problems="results/sources/trex/{member}/problems.parquet",
    log:
        "logs/sources/trex/{member}.log",
    benchmark:
        "logs/sources/trex/{member}.jsonl"
    wildcard_constraints:
        member=r"re-nlg_\d+-\d+",
    threads: 1
    resources:
        # one file's bytes, its parsed form and its columns
        mem_mb=1500,
    params:
        max_bad=config["sources"]["trex"]["max_bad"],
    script:
        "../scripts/ingest_trex.py"


rule merge_trex:
    input:
        triples=lambda w: expand(
            rules.ingest_trex.output.triples, member=trex_members()
        ),
        mentions=lambda w: expand(
            rules.ingest_trex.output.mentions, member=trex_members()
        ),
        documents=lambda w: expand(
            rules.ingest_trex.output.documents, member=trex_members()
        ),
        problems=lambda w: expand(
            rules.ingest_trex.output.problems, member=trex_members()
        ),
        code=code("sources/trex"),
    output:
        triples="results/sources/trex/triples.parquet",
        labels="results/sources/trex/labels.parquet",
        problems="results/sources/trex/problems.parquet",
    log:
        "logs/sources/trex.log",
    benchmark:
        "logs/sources/trex.jsonl"
    threads: 2
    script:
        "../scripts/merge_trex.py"


if config["sources"]["bear"]["access"] == "live":

    rule download_bear:
        input:
            code=code("sources/download", "sources/bear_archive"),
        output:
            small=directory(f"{config['sources']['bear']['folder']}/BEAR"),
            big=directory(f"{config['sources']['bear']['folder']}/BEAR-big"),
            info=f"{config['sources']['bear']['folder']}/relation_info.json",
        log:
            "logs/sources/bear.log",
        benchmark:
            "logs/sources/bear.jsonl"
        threads: 1
        params:
            url=config["sources"]["bear"]["url"],
            contact=config["contact"],
        script:
            "../scripts/download_bear.py"
