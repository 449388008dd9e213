# benchmarks: questions made of facts.
# Needs results/sources/{source}/facts.parquet, templates and released files;
# makes results/benchmarks/{benchmark}/{items,candidates,prompts}.parquet.


rule construct_bear:
    input:
        statements=lambda w: f"results/sources/{ORIGIN[w.origin]}/facts.parquet",
        relations="resources/templates/bear_relations.tsv",
        templates="resources/templates/templates.tsv",
        labels="resources/templates/bear_labels.tsv",
        review="resources/templates/bear_review.tsv",
        code=code(
            "benchmarks/bear",
            "benchmarks/bear_choice",
            "benchmarks/bear_filters",
            "benchmarks/bear_frames",
        ),
    output:
        big_questions="results/benchmarks/{origin}_big/items.parquet",
        big_candidates="results/benchmarks/{origin}_big/candidates.parquet",
        big_prompts="results/benchmarks/{origin}_big/prompts.parquet",
        big_relations="results/benchmarks/{origin}_big/relations.parquet",
        lite_questions="results/benchmarks/{origin}_lite/items.parquet",
        lite_candidates="results/benchmarks/{origin}_lite/candidates.parquet",
        lite_prompts="results/benchmarks/{origin}_lite/prompts.parquet",
        lite_relations="results/benchmarks/{origin}_lite/relations.parquet",
        funnel="results/benchmarks/{origin}_big/funnel.parquet",
        dropped="results/benchmarks/{origin}_big/dropped.parquet",
        choice="results/benchmarks/{origin}_big/choice.parquet",
        spares="results/benchmarks/{origin}_big/spares.parquet",
        reviewed="results/benchmarks/{origin}_big/reviewed.parquet",
    log:
        "logs/benchmarks/{origin}.log",
    benchmark:
        "logs/benchmarks/{origin}.jsonl"
    wildcard_constraints:
        origin="bear|world",
    threads: 1
    params:
        construction=lambda w: config[w.origin],
    script:
        "../scripts/construct_bear.py"


rule load_bear:
    input:
        folder=released_bear,
        code=code("benchmarks/bear_released", "benchmarks/bear_frames"),
    output:
        questions="results/benchmarks/bear{size}_released/items.parquet",
        candidates="results/benchmarks/bear{size}_released/candidates.parquet",
        prompts="results/benchmarks/bear{size}_released/prompts.parquet",
        relations="results/benchmarks/bear{size}_released/relations.parquet",
    log:
        "logs/benchmarks/bear{size}_released.log",
    benchmark:
        "logs/benchmarks/bear{size}_released.jsonl"
    wildcard_constraints:
        size="|_big",
    threads: 1
    params:
        released=config["released"],
    script:
        "../scripts/load_bear.py"


rule build_choices:
    input:
        questions="results/benchmarks/{benchmark}/items.parquet",
        reasoning="results/benchmarks/{benchmark}/reasoning.parquet",
        candidates="results/benchmarks/{benchmark}/candidates.parquet",
        prompts="results/benchmarks/{benchmark}/prompts.parquet",
        code=code("benchmarks/choices", "sampling"),
    output:
        choices="results/benchmarks/{benchmark}/choices.parquet",
    log:
        "logs/benchmarks/{benchmark}.choices.log",
    benchmark:
        "logs/benchmarks/{benchmark}.choices.jsonl"
    threads: 1
    params:
        settings={
            key: value for key, value in config["choice"].items() if key != "ways"
        },
        switches=switches("negatives", "mc_wording"),
        seed=config["seed"],
    script:
        "../scripts/build_choices.py"


rule construct_ontoprobe:
    input:
        classes=lambda w: f"results/knowledge/{ONTOLOGIES[w.origin][0]}/classes.parquet",
        class_chains=lambda w: f"results/knowledge/{ONTOLOGIES[w.origin][0]}/class_chains.parquet",
        instances=lambda w: f"results/knowledge/{ONTOLOGIES[w.origin][0]}/instances.parquet",
        properties=lambda w: f"results/knowledge/{ONTOLOGIES[w.origin][0]}/properties.parquet",
        property_chains=lambda w: f"results/knowledge/{ONTOLOGIES[w.origin][0]}/property_chains.parquet",
        statements=lambda w: f"results/sources/{ONTOLOGIES[w.origin][1]}/facts.parquet",
        patterns="resources/templates/ontology_patterns.tsv",
        code=code(
            "benchmarks/ontoprobe",
            "benchmarks/ontoprobe_checks",
            "benchmarks/ontoprobe_concepts",
            "benchmarks/ontoprobe_modes",
            "benchmarks/ontoprobe_own",
            "benchmarks/ontoprobe_reasoning",
            "benchmarks/ontoprobe_text",
        ),
    output:
        questions="results/benchmarks/onto_{origin}/items.parquet",
        candidates="results/benchmarks/onto_{origin}/candidates.parquet",
        prompts="results/benchmarks/onto_{origin}/prompts.parquet",
        reasoning="results/benchmarks/onto_{origin}/reasoning.parquet",
        funnel="results/benchmarks/onto_{origin}/funnel.parquet",
        lite_questions="results/benchmarks/onto_{origin}_lite/items.parquet",
        lite_candidates="results/benchmarks/onto_{origin}_lite/candidates.parquet",
        lite_prompts="results/benchmarks/onto_{origin}_lite/prompts.parquet",
    log:
        "logs/benchmarks/onto_{origin}.log",
    benchmark:
        "logs/benchmarks/onto_{origin}.jsonl"
    wildcard_constraints:
        origin="world|built",
    threads: 1
    params:
        settings=config["ontoprobe"],
        properties=config["ontology"]["properties"],
        seed=config["seed"],
    script:
        "../scripts/load_ontoprobe.py"


rule load_ontoprobe:
    input:
        released=lambda w: released("ontoprobe", "memorizing"),
        ontology=lambda w: released("ontoprobe", "ontology"),
        code=code(
            "benchmarks/ontoprobe",
            "benchmarks/ontoprobe_checks",
            "benchmarks/ontoprobe_concepts",
            "benchmarks/ontoprobe_modes",
            "benchmarks/ontoprobe_reasoning",
            "benchmarks/ontoprobe_released",
            "benchmarks/ontoprobe_text",
        ),
    output:
        questions="results/benchmarks/onto_released/items.parquet",
        candidates="results/benchmarks/onto_released/candidates.parquet",
        prompts="results/benchmarks/onto_released/prompts.parquet",
        reasoning="results/benchmarks/onto_released/reasoning.parquet",
        funnel="results/benchmarks/onto_released/funnel.parquet",
        lite_questions="results/benchmarks/onto_released_lite/items.parquet",
        lite_candidates="results/benchmarks/onto_released_lite/candidates.parquet",
        lite_prompts="results/benchmarks/onto_released_lite/prompts.parquet",
    log:
        "logs/benchmarks/onto_released.log",
    benchmark:
        "logs/benchmarks/onto_released.jsonl"
    threads: 1
    params:
        settings=config["ontoprobe"],
        seed=config["seed"],
    script:
        "../scripts/load_ontoprobe.py"


rule encode_graph:
    input:
        facts=attribute_facts(),
        code=code("benchmarks/graph", "benchmarks/graph_frames"),
    output:
        edges="results/benchmarks/graph/edges.parquet",
        literals="results/benchmarks/graph/literals.parquet",
        entities="results/benchmarks/graph/entities.parquet",
        counts="results/benchmarks/graph/counts.parquet",
    log:
        "logs/benchmarks/graph.log",
    benchmark:
        "logs/benchmarks/graph.jsonl"
    threads: 2
    resources:
        mem_mb=config["attributes"]["memory_mb"],
    params:
        literals=config["attributes"]["literals"],
        memory_mb=config["attributes"]["memory_mb"],
    script:
        "../scripts/encode_graph.py"


rule build_attribute:
    input:
        edges="results/benchmarks/graph/edges.parquet",
        literals="results/benchmarks/graph/literals.parquet",
        entities="results/benchmarks/graph/entities.parquet",
        templates=template_tables(),
        names="resources/world/properties.tsv",
        bias="resources/templates/kg_bias.tsv",
        code=lambda w: code(
            f"benchmarks/{w.attribute}",
            "benchmarks/graph",
            "benchmarks/graph_checks",
            "benchmarks/graph_examples",
            "benchmarks/graph_items",
            "benchmarks/graph_patterns",
            "benchmarks/graph_sensitivity",
            "benchmarks/graph_settings",
            "benchmarks/graph_wedges",
            "sampling",
        ),
    output:
        questions="results/benchmarks/{attribute}/items.parquet",
        candidates="results/benchmarks/{attribute}/candidates.parquet",
        examples="results/benchmarks/{attribute}/examples.parquet",
        steps="results/benchmarks/{attribute}/funnel.parquet",
        patterns="results/benchmarks/{attribute}/patterns.parquet",
        sizes="results/benchmarks/{attribute}/sizes.parquet",
        sensitivity="results/benchmarks/{attribute}/sensitivity.parquet",
    log:
        "logs/benchmarks/{attribute}.log",
    benchmark:
        "logs/benchmarks/{attribute}.jsonl"
    wildcard_constraints:
        attribute="|".join(ATTRIBUTES),
    threads: 1
    resources:
        mem_mb=config["attributes"]["memory_mb"],
    params:
        settings=config["attributes"],
        seed=config["seed"],
    script:
        "../scripts/build_attribute.py"
