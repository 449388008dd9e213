# sources: all external data, as raw tables.
# Needs resources/world, RDF files or endpoints, a folder or zip of T-REx files; makes
# <results>/sources/{source}/*.parquet and the raw snapshots below the data folder.
from kgprobe.sources.dumps import lock_file

#: tables of <results>/sources/{source}/ and the queries that they are read from
PULLED = {
    "wikidata": [
        "properties",
        "property_hierarchy",
        "constraints",
        "equivalent_property",
        "constraint_classes",
    ],
    "dbpedia": [
        "classes",
        "class_hierarchy",
        "class_equivalence",
        "properties",
        "property_hierarchy",
        "property_equivalence",
    ],
}


#: minutes of a pull, a download and a job that reads a dump, for clusters with time limits; what has
#: arrived by then is kept
PULL, DOWNLOAD, READING = 1440, 2880, 1440
#: tables that statements are read from
READ = sources.read_dumps(SETTINGS)
#: the files of fixed commits and their ids
LOCK_FILE = lock_file.read_lock_file(experiments.located(SETTINGS.sources.lock_file))
#: tables of a user-supplied graph
OWN_TABLES = (
    "facts coverage classes class_hierarchy types properties property_hierarchy "
    "templates problems"
).split()


rule pull_facts:
    input:
        rdf=rdf,
        query=lambda w: f"<resources>/queries/wikidata/{endpoint(SETTINGS, w.source).statements}.rq",
        properties="<resources>/queries/wikidata/properties.rq",
        # counts what the query for facts leaves out, if there is anything to count
        left_out=lambda w: (
            []
            if endpoint(SETTINGS, w.source).statements == "facts_truthy"
            else "<resources>/queries/wikidata/left_out.rq"
        ),
        relations="<resources>/templates/bear_relations.tsv",
        dumped=lambda w: sources.large_relations(SETTINGS, w.source),
    output:
        facts="<results>/sources/{source}/facts.parquet",
        coverage="<results>/sources/{source}/coverage.parquet",
    log:
        "<logs>/sources/{source}/facts.log",
    wildcard_constraints:
        source="world" if sources.is_dump(SETTINGS, "wikidata") else "wikidata|world",
    priority: FIRST
    localrule: True
    threads: 1
    resources:
        sparql=1,
        runtime=PULL,
    params:
        code=code("pull_facts"),
        settings=lambda w: asdict(endpoint(SETTINGS, w.source)),
        data=SETTINGS.data,
        endpoints=SETTINGS.sources.endpoints,
        languages=list(SETTINGS.languages),
        least=lambda w: 0 if w.source == "world" else SETTINGS.bear.min_sitelinks,
        # everything in the embedded graph; only BEAR's relations of Wikidata
        everything=lambda w: w.source == "world",
    script:
        "../scripts/pull_facts.py"


rule pull:
    input:
        rdf=rdf,
        queries=lambda w: [
            f"<resources>/queries/{sources.graph_of(w.source)}/{w.query}.rq"
        ],
    output:
        tables=["<results>/sources/{source}/{query}.parquet"],
    log:
        "<logs>/sources/{source}/{query}.log",
    wildcard_constraints:
        query="|".join(sorted(set(sum(PULLED.values(), [])))),
        source="wikidata|dbpedia",
    priority: FIRST
    localrule: True
    threads: 1
    resources:
        sparql=1,
        runtime=PULL,
    params:
        code=code("pull"),
        source=lambda w: w.source,
        settings=lambda w: asdict(endpoint(SETTINGS, w.source)),
        data=SETTINGS.data,
        endpoints=SETTINGS.sources.endpoints,
        languages=list(SETTINGS.languages),
    script:
        "../scripts/pull.py"


# the embedded graphs: one job for each, which loads its files once and runs all queries
for SOURCE, GRAPH in {"world": "wikidata", "world_dbpedia": "dbpedia"}.items():

    rule:
        name:
            f"pull_{SOURCE}"
        input:
            rdf=sources.rdf_files(SETTINGS, SOURCE),
            queries=expand(
                "<resources>/queries/{graph}/{query}.rq",
                graph=GRAPH,
                query=PULLED[GRAPH],
            ),
        output:
            tables=expand(
                "<results>/sources/{source}/{query}.parquet",
                source=SOURCE,
                query=PULLED[GRAPH],
            ),
        log:
            f"<logs>/sources/{SOURCE}/tables.log",
        priority: FIRST
        localrule: True
        threads: 1
        resources:
            sparql=1,
            runtime=PULL,
        params:
            code=code("pull"),
            source=SOURCE,
            settings=asdict(endpoint(SETTINGS, SOURCE)),
            data=SETTINGS.data,
            endpoints=SETTINGS.sources.endpoints,
            languages=list(SETTINGS.languages),
        script:
            "../scripts/pull.py"


rule pull_types:
    input:
        rdf=rdf,
        classes="<results>/sources/{source}/classes.parquet",
        query="<resources>/queries/dbpedia/instances.rq",
    output:
        table="<results>/sources/{source}/types.parquet",
    log:
        "<logs>/sources/{source}/types.log",
    wildcard_constraints:
        source=".*dbpedia",
    priority: FIRST
    localrule: True
    threads: 1
    resources:
        sparql=1,
        runtime=PULL,
    params:
        code=code("pull_types"),
        settings=lambda w: asdict(endpoint(SETTINGS, w.source)),
        data=SETTINGS.data,
        endpoints=SETTINGS.sources.endpoints,
        languages=list(SETTINGS.languages),
    script:
        "../scripts/pull_types.py"


rule ingest_trex:
    input:
        dump=lambda w: sources.trex_files(SETTINGS, w.part),
    output:
        shards=directory("<results>/sources/trex/files/{part}"),
    log:
        "<logs>/sources/trex/{part}.log",
    wildcard_constraints:
        part=r"\d+",
    priority: FIRST
    threads: 1
    resources:
        # the bytes of one file, its parsed form and its columns
        mem_mb=1500,
    params:
        code=code("ingest_trex"),
        members=lambda w: sources.trex_parts(SETTINGS)[w.part],
        max_bad=SETTINGS.sources.trex.max_bad,
    script:
        "../scripts/ingest_trex.py"


rule merge_trex:
    input:
        shards=lambda w: expand(
            rules.ingest_trex.output.shards, part=sources.trex_parts(SETTINGS)
        ),
    output:
        triples="<results>/sources/trex/triples.parquet",
        labels="<results>/sources/trex/labels.parquet",
        problems="<results>/sources/trex/problems.parquet",
    log:
        "<logs>/sources/trex.log",
    # requests one core: with two, it would wait for both cores behind probes that take an hour
    priority: FIRST
    threads: 1
    params:
        code=code("merge_trex"),
    script:
        "../scripts/merge_trex.py"


rule read_dump:
    input:
        dump=lambda w: sources.statement_files(SETTINGS, w.dump),
        relations="<resources>/templates/bear_relations.tsv",
    output:
        facts="<results>/sources/{dump}/facts.parquet",
        coverage="<results>/sources/{dump}/coverage.parquet",
        unread="<results>/sources/{dump}/unread.parquet",
        aliases="<results>/sources/{dump}/aliases.parquet",
        # properties as in the query service, on which the queries run
        properties="<results>/sources/{dump}/described.nt",
    log:
        "<logs>/sources/{dump}/facts.log",
    wildcard_constraints:
        dump="|".join(READ) or "none",
    priority: FIRST
    # as many processes unpack as read unpacked text; each holds a block of text and its rows
    threads: 8
    resources:
        mem_mb=lambda w, threads: 2000 + 1000 * threads,
        runtime=READING,
    params:
        code=code("read_dump"),
        settings=lambda w: asdict(READ[w.dump]),
        data=SETTINGS.data,
        languages=list(SETTINGS.languages),
    script:
        "../scripts/read_dump.py"


rule read_graph:
    input:
        files=lambda w: sources.files_in(GRAPHS[w.graph].files),
        labels=lambda w: files(GRAPHS[w.graph].labels),
    output:
        **{
            table: f"<results>/sources/{{graph}}/{table}.parquet"
            for table in OWN_TABLES
        },
    log:
        "<logs>/sources/{graph}.log",
    priority: FIRST
    threads: 1
    params:
        code=code("read_graph"),
        settings=lambda w: sources.own_graph(SETTINGS, w.graph),
        languages=list(SETTINGS.languages),
    script:
        "../scripts/read_graph.py"


if sources.is_dump(SETTINGS, "dbpedia"):
    TYPES = sources.dump_of(SETTINGS, "dbpedia", "types", ("ntriples",))

    ruleorder: read_types > pull_types > pull

    rule read_types:
        input:
            dump=sources.dump_files(SETTINGS, TYPES),
            classes="<results>/sources/dbpedia/classes.parquet",
        output:
            types="<results>/sources/dbpedia/types.parquet",
            unread="<results>/sources/dbpedia/unread.parquet",
        log:
            "<logs>/sources/dbpedia/types.log",
        priority: FIRST
        threads: 8
        resources:
            mem_mb=lambda w, threads: 2000 + 1000 * threads,
            runtime=READING,
        params:
            code=code("read_types"),
            settings=asdict(TYPES),
            most=SETTINGS.sources.dbpedia.most_instances,
            data=SETTINGS.data,
            languages=list(SETTINGS.languages),
        script:
            "../scripts/read_types.py"


rule pull_attribute_aliases:
    input:
        rdf=lambda w: sources.rdf_files(SETTINGS, ATTRIBUTE_GRAPH.source),
        read=sources.dump_aliases(SETTINGS, ATTRIBUTE_GRAPH.source),
        questions=[],
        candidates=files_of(RUN.probed("attributes"), "candidates"),
        query="<resources>/queries/wikidata/aliases.rq",
    output:
        aliases="<results>/benchmarks/graph/aliases.parquet",
    log:
        "<logs>/benchmarks/attribute_aliases.log",
    localrule: True
    threads: 1
    resources:
        sparql=1,
        runtime=PULL,
    params:
        code=code("pull_aliases"),
        source=ATTRIBUTE_GRAPH.source,
        settings=asdict(endpoint(SETTINGS, ATTRIBUTE_GRAPH.source)),
        data=SETTINGS.data,
        endpoints=SETTINGS.sources.endpoints,
        languages=list(SETTINGS.languages),
    script:
        "../scripts/pull_aliases.py"


rule pull_aliases:
    input:
        rdf=lambda w: sources.rdf_files(SETTINGS, ORIGIN[w.origin]),
        read=lambda w: sources.dump_aliases(SETTINGS, ORIGIN[w.origin]),
        questions=["<results>/benchmarks/{origin}_big/items.parquet"],
        candidates=["<results>/benchmarks/{origin}_big/candidates.parquet"],
        query="<resources>/queries/wikidata/aliases.rq",
    output:
        aliases="<results>/benchmarks/{origin}_big/aliases.parquet",
    log:
        "<logs>/benchmarks/{origin}_aliases.log",
    wildcard_constraints:
        origin="bear|world",
    localrule: True
    threads: 1
    resources:
        sparql=1,
        runtime=PULL,
    params:
        code=code("pull_aliases"),
        source=lambda w: ORIGIN[w.origin],
        settings=lambda w: asdict(endpoint(SETTINGS, ORIGIN[w.origin])),
        data=SETTINGS.data,
        endpoints=SETTINGS.sources.endpoints,
        languages=list(SETTINGS.languages),
    script:
        "../scripts/pull_aliases.py"


for (name, number), archive in sources.archives(SETTINGS).items():
    tree = sources.pinned(LOCK_FILE, archive)

    rule:
        name:
            f"download_{name}_{number}"
        output:
            [
                directory(path) if place.endswith("/") else path
                for part, place in archive.parts.items()
                for path in [f"{getattr(SETTINGS.sources, name).folder}/{part}"]
            ],
        log:
            f"<logs>/sources/{name}_{number}.log",
        localrule: True
        threads: 1
        resources:
            # at most two connections per host
            downloads=1,
            runtime=DOWNLOAD,
        params:
            code=code("download_released"),
            name=name,
            number=number,
            url=archive.url,
            parts=archive.parts,
            sums=asdict(archive.sums),
            # its files and their ids; timeouts and rate limits change no file
            tree=asdict(tree) if tree else None,
            cut=SETTINGS.sources.cut,
        script:
            "../scripts/download_released.py"


for name, (file, url, sums) in sources.downloads(SETTINGS).items():

    rule:
        name:
            f"download_{name}"
        output:
            file=file,
        log:
            f"<logs>/sources/{name}_download.log",
        localrule: True
        threads: 1
        resources:
            downloads=1,
            runtime=DOWNLOAD,
        params:
            code=code("download_file"),
            name=name,
            url=url,
            sums=sums,
        script:
            "../scripts/download_file.py"
