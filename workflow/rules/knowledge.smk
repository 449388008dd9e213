# knowledge: facts from the sources.
# Needs <results>/sources/{source}/facts.parquet; makes <results>/knowledge/{source}/facts.parquet.


rule facts:
    input:
        statements="<results>/sources/{source}/facts.parquet",
    output:
        facts="<results>/knowledge/{source}/facts.parquet",
    log:
        "<logs>/knowledge/{source}/facts.log",
    wildcard_constraints:
        source="|".join(["wikidata", "world", *DUMPS, *GRAPHS]),
    priority: FIRST
    threads: 1
    params:
        code=code("facts"),
    script:
        "../scripts/facts.py"


#: tables of the two graphs that the ontology needs
OF_DBPEDIA = "classes class_hierarchy class_equivalence properties property_equivalence types".split()
OF_WIKIDATA = "properties property_hierarchy constraints constraint_classes equivalent_property".split()
#: the ontology of the configured graphs, and that of the embedded graph, which control models know
ONTOLOGY = {
    "ontology": ("dbpedia", "wikidata"),
    "world_ontology": ("world_dbpedia", "world"),
}


rule ontology:
    input:
        dbpedia=lambda w: expand(
            "<results>/sources/{source}/{table}.parquet",
            source=ONTOLOGY[w.ontology][0],
            table=OF_DBPEDIA,
        ),
        wikidata=lambda w: expand(
            "<results>/sources/{source}/{table}.parquet",
            source=ONTOLOGY[w.ontology][1],
            table=OF_WIKIDATA,
        ),
        statements=lambda w: f"<results>/sources/{ONTOLOGY[w.ontology][1]}/facts.parquet",
        # the released selection of properties, if requested
        released=(
            (lambda w: released("ontoprobe", "ontology"))
            if SETTINGS.ontology.choice == "released"
            else []
        ),
    output:
        classes="<results>/knowledge/{ontology}/classes.parquet",
        class_chains="<results>/knowledge/{ontology}/class_chains.parquet",
        instances="<results>/knowledge/{ontology}/instances.parquet",
        properties="<results>/knowledge/{ontology}/properties.parquet",
        property_chains="<results>/knowledge/{ontology}/property_chains.parquet",
        alignment="<results>/knowledge/{ontology}/alignment.parquet",
        rejects="<results>/knowledge/{ontology}/rejects.parquet",
        steps="<results>/knowledge/{ontology}/steps.parquet",
    log:
        "<logs>/knowledge/{ontology}.log",
    wildcard_constraints:
        ontology="|".join(ONTOLOGY),
    priority: FIRST
    threads: 1
    params:
        code=code("ontology"),
        per_class=SETTINGS.ontology.per_class,
        properties=SETTINGS.ontology.properties,
        seed=SETTINGS.seed,
    script:
        "../scripts/ontology.py"


rule own_ontology:
    input:
        classes="<results>/sources/{graph}/classes.parquet",
        class_hierarchy="<results>/sources/{graph}/class_hierarchy.parquet",
        types="<results>/sources/{graph}/types.parquet",
        properties="<results>/sources/{graph}/properties.parquet",
        property_hierarchy="<results>/sources/{graph}/property_hierarchy.parquet",
        facts="<results>/sources/{graph}/facts.parquet",
    output:
        classes="<results>/knowledge/{graph}/classes.parquet",
        class_chains="<results>/knowledge/{graph}/class_chains.parquet",
        instances="<results>/knowledge/{graph}/instances.parquet",
        properties="<results>/knowledge/{graph}/properties.parquet",
        property_chains="<results>/knowledge/{graph}/property_chains.parquet",
        steps="<results>/knowledge/{graph}/steps.parquet",
    log:
        "<logs>/knowledge/{graph}.log",
    priority: FIRST
    threads: 1
    params:
        code=code("own_ontology"),
        per_class=SETTINGS.ontology.per_class,
        properties=SETTINGS.ontology.properties,
        seed=SETTINGS.seed,
    script:
        "../scripts/own_ontology.py"


rule trex_facts:
    input:
        triples="<results>/sources/trex/triples.parquet",
        labels="<results>/sources/trex/labels.parquet",
    output:
        facts="<results>/knowledge/trex/facts.parquet",
        dates="<results>/knowledge/trex/dates.parquet",
    log:
        "<logs>/knowledge/trex/facts.log",
    priority: FIRST
    threads: 1
    resources:
        # the process and the frames that the joins return need the rest
        mem_mb=3000,
    params:
        code=code("trex_facts"),
        joins=asdict(SETTINGS.joins),
    script:
        "../scripts/trex_facts.py"
