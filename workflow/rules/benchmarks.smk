# benchmarks: questions built from facts.
# Needs <results>/sources/{source}/facts.parquet, templates and released files;
# makes <results>/benchmarks/{benchmark}/{items,candidates,prompts}.parquet.

#: the attributes that some probe uses, or all of them if none does
ASKED_ATTRIBUTES = [a for a in ATTRIBUTES if a in RUN.probed()] or list(ATTRIBUTES)
#: whether the facts for prompt search come from this run's pulls
IS_PULLED = SETTINGS.prompt_tasks.facts.search == "pulls"


rule word_graph:
    input:
        statements="<results>/sources/{graph}/facts.parquet",
        properties="<results>/sources/{graph}/properties.parquet",
        given="<results>/sources/{graph}/templates.parquet",
        own=lambda w: files([t] if (t := GRAPHS[w.graph].templates) else []),
        relations="<resources>/templates/bear_relations.tsv",
        templates="<resources>/templates/templates.tsv",
    output:
        relations="<results>/benchmarks/own/{graph}/relations.tsv",
        templates="<results>/benchmarks/own/{graph}/templates.tsv",
        patterns="<results>/benchmarks/own/{graph}/patterns.tsv",
    log:
        "<logs>/benchmarks/{graph}_words.log",
    priority: FIRST
    threads: 1
    params:
        code=code("word_graph"),
        settings=lambda w: without(GRAPHS[w.graph], "bear"),
    script:
        "../scripts/word_graph.py"


rule allow_graph:
    input:
        facts="<results>/sources/{graph}/facts.parquet",
        statements="<results>/knowledge/{graph}/facts.parquet",
        relations="<results>/benchmarks/own/{graph}/relations.tsv",
        templates="<results>/benchmarks/own/{graph}/templates.tsv",
        patterns="<results>/benchmarks/own/{graph}/patterns.tsv",
        classes="<results>/knowledge/{graph}/classes.parquet",
        class_chains="<results>/knowledge/{graph}/class_chains.parquet",
        instances="<results>/knowledge/{graph}/instances.parquet",
        properties="<results>/knowledge/{graph}/properties.parquet",
        property_chains="<results>/knowledge/{graph}/property_chains.parquet",
        # labels of relations
        names="<results>/sources/{graph}/properties.parquet",
        bias="<resources>/templates/attributes_bias.tsv",
        tables=files(SETTINGS.attribute_prompts.tables),
    output:
        table="<results>/sources/{graph}/allows.parquet",
        text="<results>/sources/{graph}/allows.tsv",
    log:
        "<logs>/benchmarks/{graph}_allows.log",
    priority: FIRST
    threads: 1
    resources:
        # the process and the frames that the joins return need the rest
        mem_mb=3000,
    params:
        # the script imports all of them by name
        code=code("allow_graph", "benchmarks/attributes/*"),
        section=lambda w: asdict(GRAPHS[w.graph]),
        ontoprobe=without(SETTINGS.ontoprobe, "soft"),
        properties=SETTINGS.ontology.properties,
        attributes=asdict(SETTINGS.attributes),
        prompts=asdict(SETTINGS.prompt_tasks.graphs),
        joins=asdict(SETTINGS.joins),
        seed=SETTINGS.seed,
    script:
        "../scripts/allow_graph.py"


rule construct_bear:
    input:
        statements=lambda w: f"<results>/sources/{ORIGIN[w.origin]}/facts.parquet",
        coverage=lambda w: f"<results>/sources/{ORIGIN[w.origin]}/coverage.parquet",
        relations=of_origin("relations", "bear_relations"),
        templates=of_origin("templates", "templates"),
        labels="<resources>/templates/bear_labels.tsv",
        review="<resources>/templates/bear_review.tsv",
    output:
        big_questions="<results>/benchmarks/{origin}_big/items.parquet",
        big_candidates="<results>/benchmarks/{origin}_big/candidates.parquet",
        big_prompts="<results>/benchmarks/{origin}_big/prompts.parquet",
        big_relations="<results>/benchmarks/{origin}_big/relations.parquet",
        lite_questions="<results>/benchmarks/{origin}_lite/items.parquet",
        lite_candidates="<results>/benchmarks/{origin}_lite/candidates.parquet",
        lite_prompts="<results>/benchmarks/{origin}_lite/prompts.parquet",
        lite_relations="<results>/benchmarks/{origin}_lite/relations.parquet",
        funnel="<results>/benchmarks/{origin}_big/funnel.parquet",
        dropped="<results>/benchmarks/{origin}_big/dropped.parquet",
        choice="<results>/benchmarks/{origin}_big/choice.parquet",
        spares="<results>/benchmarks/{origin}_big/spares.parquet",
        reviewed="<results>/benchmarks/{origin}_big/reviewed.parquet",
    log:
        "<logs>/benchmarks/{origin}.log",
    wildcard_constraints:
        origin="|".join(ORIGIN),
    priority: FIRST
    threads: 1
    params:
        code=code("construct_bear"),
        construction=lambda w: asdict(
            GRAPHS[w.origin].bear
            if w.origin in GRAPHS
            else getattr(SETTINGS, w.origin)
        ),
        languages=list(SETTINGS.languages),
    script:
        "../scripts/construct_bear.py"


rule load_bear:
    input:
        folder=lambda w: released("bear", "BEAR-big" if w.size else "BEAR"),
        domains=lambda w: sources.bear_domains(SETTINGS),
    output:
        questions="<results>/benchmarks/bear{size}_released/items.parquet",
        candidates="<results>/benchmarks/bear{size}_released/candidates.parquet",
        prompts="<results>/benchmarks/bear{size}_released/prompts.parquet",
        relations="<results>/benchmarks/bear{size}_released/relations.parquet",
    log:
        "<logs>/benchmarks/bear{size}_released.log",
    wildcard_constraints:
        size="|_big",
    priority: FIRST
    threads: 1
    params:
        code=code("load_bear"),
        released=asdict(SETTINGS.released),
        seed=SETTINGS.seed,
    script:
        "../scripts/load_bear.py"


rule load_lama:
    input:
        facts=lambda w: lama("trex_original"),
        manual=lambda w: lama("relations.jsonl"),
    output:
        questions="<results>/benchmarks/lama/items.parquet",
        candidates="<results>/benchmarks/lama/candidates.parquet",
        prompts="<results>/benchmarks/lama/prompts.parquet",
        relations="<results>/benchmarks/lama/relations.parquet",
    log:
        "<logs>/benchmarks/lama.log",
    priority: FIRST
    threads: 1
    params:
        code=code("load_lama"),
        settings=asdict(SETTINGS.lama),
        seed=SETTINGS.seed,
    script:
        "../scripts/load_lama.py"


rule build_choices:
    input:
        questions="<results>/benchmarks/{benchmark}/items.parquet",
        reasoning="<results>/benchmarks/{benchmark}/reasoning.parquet",
        candidates="<results>/benchmarks/{benchmark}/candidates.parquet",
        prompts="<results>/benchmarks/{benchmark}/prompts.parquet",
    output:
        choices="<results>/benchmarks/{benchmark}/choices.parquet",
    log:
        "<logs>/benchmarks/{benchmark}.choices.log",
    priority: FIRST
    threads: 1
    params:
        code=code("build_choices"),
        options=SETTINGS.choice.options,
        most=SETTINGS.choice.most,
        switches=switches(SETTINGS, "negatives", "mc_phrasing"),
        seed=SETTINGS.seed,
    script:
        "../scripts/build_choices.py"


rule construct_ontoprobe:
    input:
        classes=lambda w: f"<results>/knowledge/{ONTOLOGIES[w.origin][0]}/classes.parquet",
        class_chains=lambda w: f"<results>/knowledge/{ONTOLOGIES[w.origin][0]}/class_chains.parquet",
        instances=lambda w: f"<results>/knowledge/{ONTOLOGIES[w.origin][0]}/instances.parquet",
        properties=lambda w: f"<results>/knowledge/{ONTOLOGIES[w.origin][0]}/properties.parquet",
        property_chains=lambda w: f"<results>/knowledge/{ONTOLOGIES[w.origin][0]}/property_chains.parquet",
        statements=lambda w: f"<results>/sources/{ONTOLOGIES[w.origin][1]}/facts.parquet",
        patterns=of_origin("patterns", "ontology_patterns"),
    output:
        questions="<results>/benchmarks/onto_{origin}/items.parquet",
        candidates="<results>/benchmarks/onto_{origin}/candidates.parquet",
        prompts="<results>/benchmarks/onto_{origin}/prompts.parquet",
        reasoning="<results>/benchmarks/onto_{origin}/reasoning.parquet",
        funnel="<results>/benchmarks/onto_{origin}/funnel.parquet",
        lite_questions="<results>/benchmarks/onto_{origin}_lite/items.parquet",
        lite_candidates="<results>/benchmarks/onto_{origin}_lite/candidates.parquet",
        lite_prompts="<results>/benchmarks/onto_{origin}_lite/prompts.parquet",
        lite_reasoning="<results>/benchmarks/onto_{origin}_lite/reasoning.parquet",
    log:
        "<logs>/benchmarks/onto_{origin}.log",
    wildcard_constraints:
        origin="|".join(ONTOLOGIES),
    priority: FIRST
    threads: 1
    params:
        code=code("load_ontoprobe"),
        settings=without(SETTINGS.ontoprobe, "soft"),
        rule_rows=SETTINGS.ontoprobe.soft.rule_rows,
        properties=SETTINGS.ontology.properties,
        # user-supplied graphs are checked for what they contain
        partly=lambda w: w.origin in GRAPHS,
        languages=list(SETTINGS.languages),
        seed=SETTINGS.seed,
    script:
        "../scripts/load_ontoprobe.py"


rule load_ontoprobe:
    input:
        released=lambda w: released("ontoprobe", "memorizing"),
        ontology=lambda w: released("ontoprobe", "ontology"),
    output:
        questions="<results>/benchmarks/onto_released/items.parquet",
        candidates="<results>/benchmarks/onto_released/candidates.parquet",
        prompts="<results>/benchmarks/onto_released/prompts.parquet",
        reasoning="<results>/benchmarks/onto_released/reasoning.parquet",
        funnel="<results>/benchmarks/onto_released/funnel.parquet",
        lite_questions="<results>/benchmarks/onto_released_lite/items.parquet",
        lite_candidates="<results>/benchmarks/onto_released_lite/candidates.parquet",
        lite_prompts="<results>/benchmarks/onto_released_lite/prompts.parquet",
        lite_reasoning="<results>/benchmarks/onto_released_lite/reasoning.parquet",
    log:
        "<logs>/benchmarks/onto_released.log",
    priority: FIRST
    threads: 1
    params:
        code=code("load_ontoprobe"),
        settings=without(SETTINGS.ontoprobe, "soft"),
        rule_rows=SETTINGS.ontoprobe.soft.rule_rows,
        seed=SETTINGS.seed,
    script:
        "../scripts/load_ontoprobe.py"


rule encode_graph:
    input:
        facts=attributes.graph_facts(SETTINGS),
    output:
        edges="<results>/benchmarks/graph/edges.parquet",
        literals="<results>/benchmarks/graph/literals.parquet",
        entities="<results>/benchmarks/graph/entities.parquet",
        counts="<results>/benchmarks/graph/counts.parquet",
        ids="<results>/benchmarks/graph/ids.parquet",
    log:
        "<logs>/benchmarks/graph.log",
    priority: FIRST
    # requests one core: with two, it would wait for both cores behind probes that take an hour
    threads: 1
    resources:
        # the process and the frames that the joins return need the rest
        mem_mb=3000,
    params:
        code=code("encode_graph"),
        literals=SETTINGS.attributes.literals,
        own=ATTRIBUTE_GRAPH.section is not None,
        joins=asdict(SETTINGS.joins),
    script:
        "../scripts/encode_graph.py"


# one job for the embedded graph, where most attributes take less time than a job's start; one job
# per attribute otherwise, so that one failure does not block the others
for PART, NAMES in (
    {"": ASKED_ATTRIBUTES}
    if SETTINGS.attributes.graph == "world"
    else {f"_{name}": [name] for name in ASKED_ATTRIBUTES}
).items():

    rule:
        name:
            f"build_attributes{PART}"
        input:
            edges="<results>/benchmarks/graph/edges.parquet",
            literals="<results>/benchmarks/graph/literals.parquet",
            entities="<results>/benchmarks/graph/entities.parquet",
            ids="<results>/benchmarks/graph/ids.parquet",
            # labels, for relations without a written template
            properties=ATTRIBUTE_GRAPH.properties,
            worded=ATTRIBUTE_GRAPH.templates,
            tables=(
                files(SETTINGS.attribute_prompts.tables)
                if ATTRIBUTE_GRAPH.section
                else []
            ),
            names="<resources>/world/properties.tsv",
            bias="<resources>/templates/attributes_bias.tsv",
            amber=attributes.amber_sets(SETTINGS) if "ambiguous" in NAMES else [],
        output:
            questions=files_of(NAMES, "items"),
            candidates=files_of(NAMES, "candidates"),
            examples=files_of(NAMES, "examples"),
            steps=files_of(NAMES, "funnel"),
            patterns=files_of(NAMES, "patterns"),
            sizes=files_of(NAMES, "sizes"),
            sensitivity=files_of(NAMES, "sensitivity"),
        log:
            f"<logs>/benchmarks/attributes{PART}.log",
        priority: FIRST
        threads: 1
        resources:
            # the process and the frames that the joins return need the rest
            mem_mb=3000,
        params:
            # the script imports them by name; a file depends only on its attribute's module
            code=codes("build_attributes", "benchmarks/attributes", NAMES),
            attributes=NAMES,
            settings=without(SETTINGS.attributes, *(set(ATTRIBUTES) - set(NAMES))),
            joins=asdict(SETTINGS.joins),
            # a changed template rebuilds nothing; what matters is which relations have one
            templated=(
                []
                if ATTRIBUTE_GRAPH.section
                else sorted(
                    {row["relation"] for row in attributes.template_rows(SETTINGS)}
                )
            ),
            section=ATTRIBUTE_GRAPH.section,
            seed=SETTINGS.seed,
        script:
            "../scripts/build_attributes.py"


rule build_prompt_facts:
    input:
        facts=lambda w: data_parts(SETTINGS, *PROMPT_TASKS[w.facts_task]),
        words=lambda w: lama(
            "vocab/common_vocab_cased_rob.txt"
            if w.facts_task == "auto_lama_roberta"
            else "vocab/common_vocab_cased.txt"
        ),
        manual=lambda w: lama("relations.jsonl"),
        lpaqa=lambda w: lama("optiprompt"),
        templates="<resources>/templates/templates.tsv",
        # tokenizers that select facts
        tokenizers=models.token_files(RUN),
        # facts for prompt search from this run's pulls, if requested
        trex="<results>/knowledge/trex/facts.parquet" if IS_PULLED else [],
        wikidata="<results>/sources/wikidata/facts.parquet" if IS_PULLED else [],
    output:
        examples="<results>/benchmarks/{facts_task}/examples.parquet",
        words="<results>/benchmarks/{facts_task}/vocabulary.json",
        task="<results>/benchmarks/{facts_task}/task.json",
        funnel="<results>/benchmarks/{facts_task}/funnel.parquet",
    log:
        "<logs>/benchmarks/{facts_task}.log",
    wildcard_constraints:
        facts_task="auto_lama|auto_lama_trex|auto_lama_roberta",
    priority: FIRST
    threads: 1
    resources:
        mem_mb=1500,
    params:
        code=code("build_prompt_facts"),
        settings=asdict(SETTINGS.prompt_tasks.facts),
        triggers=SETTINGS.prompt_tasks.triggers.facts,
        models=models.token_models(RUN),
        seed=SETTINGS.seed,
    script:
        "../scripts/build_prompt_facts.py"


rule build_prompt_relations:
    input:
        records=lambda w: data_parts(SETTINGS, *PROMPT_TASKS[w.re_task]),
        words=lambda w: lama("vocab/common_vocab_cased.txt"),
        manual=lambda w: lama("relations.jsonl"),
        lpaqa=lambda w: lama("optiprompt"),
        templates="<resources>/templates/templates.tsv",
    output:
        examples="<results>/benchmarks/{re_task}/examples.parquet",
        words="<results>/benchmarks/{re_task}/vocabulary.json",
        task="<results>/benchmarks/{re_task}/task.json",
        funnel="<results>/benchmarks/{re_task}/funnel.parquet",
    log:
        "<logs>/benchmarks/{re_task}.log",
    wildcard_constraints:
        re_task="auto_re|auto_re_perturbed",
    priority: FIRST
    threads: 1
    resources:
        mem_mb=2500,
    params:
        code=code("build_prompt_relations"),
        settings=asdict(
            replace(
                SETTINGS.prompt_tasks.sentences,
                perturbed=prompt_settings.point(
                    "perturbed",
                    SETTINGS.prompt_tasks.sentences.perturbed,
                    SETTINGS.autoprompt.mode,
                ),
            )
        ),
        triggers=SETTINGS.prompt_tasks.triggers.relation_extraction,
        seed=SETTINGS.seed,
    script:
        "../scripts/build_prompt_relations.py"


rule build_prompt_classes:
    input:
        texts=lambda w: data_parts(SETTINGS, *PROMPT_TASKS[f"auto_{w.classes}"]),
    output:
        examples="<results>/benchmarks/auto_{classes}/examples.parquet",
        words="<results>/benchmarks/auto_{classes}/vocabulary.json",
        task="<results>/benchmarks/auto_{classes}/task.json",
        funnel="<results>/benchmarks/auto_{classes}/funnel.parquet",
    log:
        "<logs>/benchmarks/auto_{classes}.log",
    wildcard_constraints:
        classes="sst2|sick|sick_3way|sick_2way",
    priority: FIRST
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=code("build_prompt_classes"),
        settings=asdict(SETTINGS.prompt_tasks.classes),
        triggers=lambda w: getattr(
            SETTINGS.prompt_tasks.triggers, w.classes.split("_")[0]
        ),
        seed=SETTINGS.seed,
    script:
        "../scripts/build_prompt_classes.py"


rule build_prompt_world:
    input:
        facts="<results>/knowledge/world/facts.parquet",
        # the facts that prompts can be searched on
        trained_on="<resources>/control/facts.parquet",
        templates="<resources>/templates/templates.tsv",
        labels="<resources>/templates/bear_labels.tsv",
    output:
        examples="<results>/benchmarks/auto_world/examples.parquet",
        words="<results>/benchmarks/auto_world/vocabulary.json",
        task="<results>/benchmarks/auto_world/task.json",
        funnel="<results>/benchmarks/auto_world/funnel.parquet",
    log:
        "<logs>/benchmarks/auto_world.log",
    priority: FIRST
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=code("build_prompt_world"),
        settings=asdict(SETTINGS.prompt_tasks.world),
        triggers=SETTINGS.prompt_tasks.triggers.facts,
        seed=SETTINGS.seed,
    script:
        "../scripts/build_prompt_world.py"


rule build_prompt_graph:
    input:
        facts="<results>/knowledge/{graph}/facts.parquet",
        templates="<results>/benchmarks/own/{graph}/templates.tsv",
    output:
        examples="<results>/benchmarks/auto_{graph}/examples.parquet",
        words="<results>/benchmarks/auto_{graph}/vocabulary.json",
        task="<results>/benchmarks/auto_{graph}/task.json",
        funnel="<results>/benchmarks/auto_{graph}/funnel.parquet",
    log:
        "<logs>/benchmarks/auto_{graph}.log",
    priority: FIRST
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=code("build_prompt_graph"),
        settings=asdict(SETTINGS.prompt_tasks.graphs),
        triggers=SETTINGS.prompt_tasks.triggers.facts,
        seed=SETTINGS.seed,
    script:
        "../scripts/build_prompt_graph.py"


# all facts of the embedded graph, for models that were not trained on its facts
use rule build_prompt_graph as build_prompt_world_all with:
    input:
        facts="<results>/knowledge/world/facts.parquet",
        templates="<resources>/templates/templates.tsv",
    output:
        examples="<results>/benchmarks/auto_world_all/examples.parquet",
        words="<results>/benchmarks/auto_world_all/vocabulary.json",
        task="<results>/benchmarks/auto_world_all/task.json",
        funnel="<results>/benchmarks/auto_world_all/funnel.parquet",
    log:
        "<logs>/benchmarks/auto_world_all.log",
    params:
        code=code("build_prompt_graph"),
        settings=asdict(SETTINGS.prompt_tasks.world_all),
        triggers=SETTINGS.prompt_tasks.triggers.facts,
        seed=SETTINGS.seed,
