# tables: numbers, figures, report.
# Needs <results>/scores/, <results>/benchmarks/ and the published figures; makes <results>/tables/
# and <results>/report/.


from kgprobe.benchmarks import allowed
from kgprobe.sources import missing

SCORED = RUN.probes("bear", "sentence")
ATTRIBUTE_ROWS = attributes.plain_rows(RUN)
MEMORIZED, ONTO_SETS = ontoprobe.memorized_rows(RUN), ontoprobe.list_sets(RUN)
#: BEAR's printed tables and figures
FIGURES = [
    f"bear_{what}_{b}" for b in RUN.probed("bear") for what in ("size", "relations")
]
#: tables with the names of relations
NAMES = [
    "<resources>/templates/bear_relations.tsv",
    *expand(rules.word_graph.output.relations, graph=tables.own_graphs(RUN, "bear")),
]


rule tabulate:
    input:
        scores=answers_of(SCORED),
        content_free=content_free_files(RUN, SCORED),
        random_init=answers_of(baseline_rows(RUN, SCORED)),
        questions=files_of(RUN.probed("bear"), "items"),
        candidates=files_of(RUN.probed("bear"), "candidates"),
        prompts=files_of(RUN.probed("bear"), "prompts"),
        relations=files_of(RUN.probed("bear"), "relations"),
        funnels=tables.funnels(RUN),
        names=NAMES,
        trained_on=(
            ["<resources>/control/facts.parquet"] if tables.has_controls(RUN) else []
        ),
        published=[
            "<resources>/published/bear_leaderboard.tsv",
            "<resources>/published/bear_remeasured.tsv",
        ],
    output:
        results="<results>/tables/bear.parquet",
        judged="<results>/judged/bear.parquet",
        texts=directory("<results>/tables/bear"),
        section="<results>/report/sections/bear.json",
        figures=[f"<results>/report/figures/{name}.svg" for name in FIGURES],
    log:
        "<logs>/tables/bear.log",
    # the longest job of this stage
    priority: THIRD
    threads: 1
    params:
        code=code("tabulate"),
        experiments=SCORED,
        models=RUN.models,
        random_init=baseline_rows(RUN, SCORED),
        seed=SETTINGS.seed,
        descriptions={n: b.description for n, b in RUN.benchmarks.items()},
    script:
        "../scripts/tabulate.py"


rule compare_access:
    input:
        pulled=tables.pulled_facts(RUN),
        dumps=expand(
            "<results>/sources/{dump}/facts.parquet",
            dump=[n for n, d in sorted(DUMPS.items()) if d.form != "ntriples"],
        ),
    output:
        table="<results>/tables/access_agreement.parquet",
        text="<results>/tables/access_agreement.tsv",
    log:
        "<logs>/tables/access_agreement.log",
    threads: 1
    params:
        code=code("compare_access"),
        forms={name: dump.form for name, dump in DUMPS.items()},
    script:
        "../scripts/compare_access.py"


rule compare_ontology:
    input:
        released=lambda w: released("ontoprobe", "ontology"),
        classes="<results>/knowledge/ontology/classes.parquet",
        class_chains="<results>/knowledge/ontology/class_chains.parquet",
        properties="<results>/knowledge/ontology/properties.parquet",
        property_chains="<results>/knowledge/ontology/property_chains.parquet",
        alignment="<results>/knowledge/ontology/alignment.parquet",
        rejects="<results>/knowledge/ontology/rejects.parquet",
    output:
        table="<results>/tables/ontology_agreement.parquet",
        text="<results>/tables/ontology_agreement.tsv",
        differences="<results>/tables/ontology_differences.parquet",
    log:
        "<logs>/tables/ontology_agreement.log",
    threads: 1
    params:
        code=code("compare_ontology"),
    script:
        "../scripts/compare_ontology.py"


rule compare_bear:
    input:
        released=lambda w: released("bear", "BEAR-big"),
        statements="<results>/sources/wikidata/facts.parquet",
        questions="<results>/benchmarks/bear_big/items.parquet",
        candidates="<results>/benchmarks/bear_big/candidates.parquet",
        prompts="<results>/benchmarks/bear_big/prompts.parquet",
        relations="<resources>/templates/bear_relations.tsv",
        labels="<resources>/templates/bear_labels.tsv",
    output:
        table="<results>/tables/bear_against_released.parquet",
        text="<results>/tables/bear_against_released.tsv",
        states="<results>/benchmarks/bear_big/against_released.parquet",
    log:
        "<logs>/tables/bear_against_released.log",
    threads: 1
    params:
        code=code("compare_bear"),
        construction=asdict(SETTINGS.bear),
    script:
        "../scripts/compare_bear.py"


rule section_sources:
    input:
        tables=tables.comparisons(RUN),
        differences=(
            rules.compare_ontology.output.differences
            if "ontology" in SETTINGS.comparisons
            else []
        ),
        funnels=files_of(tables.compared_sets(RUN), "funnel"),
        choices=files_of(tables.compared_sets(RUN), "choice"),
        coverage=(
            "<results>/sources/wikidata/coverage.parquet"
            if tables.compared_sets(RUN)
            else []
        ),
        names="<resources>/templates/bear_relations.tsv",
    output:
        section="<results>/report/sections/sources.json",
    log:
        "<logs>/tables/section_sources.log",
    threads: 1
    params:
        code=code("section_sources"),
        circular="bear" in SETTINGS.sources.wikidata.holds,
    script:
        "../scripts/section_sources.py"


rule tabulate_attributes:
    input:
        answers=answers_of(ATTRIBUTE_ROWS),
        content_free=content_free_files(RUN, ATTRIBUTE_ROWS),
        baselines=answers_of(baseline_rows(RUN, ATTRIBUTE_ROWS)),
        baseline_golds=answers_of(baseline_rows(RUN, ATTRIBUTE_ROWS), "golds"),
        formed=answers_of(form_rows(RUN, "attributes")),
        golds=answers_of(RUN.probes("attributes", "fill"), "golds"),
        examples=files_of(RUN.probed("attributes"), "examples"),
        sizes=files_of(RUN.probed("attributes"), "sizes"),
        funnels=files_of(RUN.probed("attributes"), "funnel"),
        sensitivity=files_of(RUN.probed("attributes"), "sensitivity"),
        questions=files_of(RUN.probed("attributes"), "items"),
        candidates=files_of(RUN.probed("attributes"), "candidates"),
        prompts=files_of(RUN.probed("attributes"), "prompts"),
        edges="<results>/benchmarks/graph/edges.parquet",
        literals="<results>/benchmarks/graph/literals.parquet",
        ids="<results>/benchmarks/graph/ids.parquet",
        trained_on=(
            "<resources>/control/facts.parquet"
            if any(map(RUN.is_control, RUN.probes("attributes")))
            else []
        ),
        aliases=ATTRIBUTE_GRAPH.aliases,
        published=[
            "<resources>/published/attributes_scores.tsv",
            "<resources>/published/attributes_sizes.tsv",
            "<resources>/published/attributes_arithmetic.tsv",
        ],
        names=[
            ATTRIBUTE_GRAPH.templates or "<resources>/templates/templates.tsv",
            *files(SETTINGS.attribute_prompts.tables),
        ],
    output:
        numbers="<results>/tables/attributes.parquet",
        judged="<results>/judged/attributes.parquet",
        texts=directory("<results>/tables/attributes"),
        section="<results>/report/sections/attributes.json",
    log:
        "<logs>/tables/attributes.log",
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=code("tabulate_attributes"),
        experiments=ATTRIBUTE_ROWS,
        baselines=baseline_rows(RUN, ATTRIBUTE_ROWS),
        formed=form_rows(RUN, "attributes"),
        models=RUN.models,
        options={
            "ambiguous_denominator": SETTINGS.attribute_prompts.ambiguous_denominator,
            "intersect": SETTINGS.attribute_prompts.intersect,
        },
        thresholds=SETTINGS.attributes.thresholds,
        seed=SETTINGS.seed,
    script:
        "../scripts/tabulate_attributes.py"


rule tabulate_ontoprobe:
    input:
        answers=answers_of(MEMORIZED),
        content_free=content_free_files(RUN, MEMORIZED),
        baselines=answers_of(baseline_rows(RUN, MEMORIZED)),
        formed=answers_of(form_rows(RUN, "ontoprobe")),
        top=answers_of(MEMORIZED, "top"),
        reasoned=answers_of(RUN.probes("ontoprobe", "reason"), "ranks"),
        premises=answers_of(RUN.probes("ontoprobe", "reason"), "premises"),
        questions=files_of(ONTO_SETS, "items"),
        candidates=files_of(ONTO_SETS, "candidates"),
        prompts=files_of(ONTO_SETS, "prompts"),
        funnels=files_of([b for b in ONTO_SETS if not b.endswith("_lite")], "funnel"),
        trained_on=(
            "<resources>/control/ontology.parquet"
            if any(b.startswith("onto_world") for b in ONTO_SETS)
            else []
        ),
        published=[
            "<resources>/published/ontoprobe_configurations.tsv",
            "<resources>/published/ontoprobe_memorizing.tsv",
            "<resources>/published/ontoprobe_sizes.tsv",
            "<resources>/published/ontoprobe_choice.tsv",
            "<resources>/published/ontoprobe_reasoning.tsv",
        ],
        chosen=answers_of(RUN.probes(None, "choice")),
        choices=files_of(
            [r["benchmark"] for r in RUN.probes(None, "choice")], "choices"
        ),
        shipped=lambda w: (
            released("ontoprobe", "gpt/reasoning") if ontoprobe.is_shipped(RUN) else []
        ),
    output:
        results="<results>/tables/ontoprobe.parquet",
        judged="<results>/judged/ontoprobe.parquet",
        texts=directory("<results>/tables/ontoprobe"),
        section="<results>/report/sections/ontoprobe.json",
    log:
        "<logs>/tables/ontoprobe.log",
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("tabulate_ontoprobe"),
        experiments=MEMORIZED,
        baselines=baseline_rows(RUN, MEMORIZED),
        formed=form_rows(RUN, "ontoprobe"),
        reasoned=RUN.probes("ontoprobe", "reason"),
        chosen=RUN.probes(None, "choice"),
        models=RUN.models,
        settings=asdict(SETTINGS.ontoprobe),
        switches=switches(SETTINGS),
        seed=SETTINGS.seed,
    script:
        "../scripts/tabulate_ontoprobe.py"


rule report:
    input:
        results=tables.results_files(RUN),
        tables=[path.removesuffix(".parquet") for path in tables.results_files(RUN)],
        answers=answers_of(RUN.rows),
        judged=tables.results_files(RUN, "judged"),
        questions=tables.list_question_files(RUN),
        options=tables.list_question_files(RUN, "candidates", "prompts"),
        # questions of the two methods that do not ask a benchmark's own
        beside=sorted(
            {
                f"<results>/benchmarks/{row['benchmark']}/{name}.parquet"
                for method, name in (("choice", "choices"), ("reason", "reasoning"))
                for row in RUN.probes("ontoprobe", method)
            }
        ),
        sections=tables.sections(RUN),
        # numbers of earlier runs, shipped with the project
        measured=sorted(
            str(path)
            for path in Path(experiments.located("resources/measured")).glob("*.tsv")
            if path.stem != "bench"
        ),
        # validity of each method, from an earlier run on control models
        validity=tables.validity(RUN),
        claims="<resources>/published/claims.tsv",
        published=[f"<resources>/published/{name}.tsv" for name in """
                attributes_scores attributes_sizes autoprompt_facts autoprompt_inference
                autoprompt_relation_extraction autoprompt_relations autoprompt_sentiment
                bear_leaderboard bear_remeasured ontoprobe_choice ontoprobe_configurations
                ontoprobe_memorizing ontoprobe_reasoning ontoprobe_sizes
                """.split()],
        allows=[f"<results>/sources/{graph}/allows.parquet" for graph in GRAPHS],
        names=NAMES,
    output:
        headline="<results>/tables/headline.txt",
        claims="<results>/tables/claims.parquet",
        claim_rows=directory("<results>/tables/claim_rows"),
        page="<results>/report/index.html",
        pages=directory("<results>/report/pages"),
    log:
        "<logs>/tables/report.log",
    threads: 1
    params:
        code=code("report", "tables/report/html"),
        experiments=RUN.rows,
        models=RUN.models,
        descriptions={n: b.description for n, b in RUN.benchmarks.items()},
        configs=[os.path.relpath(path) for path in GIVEN],
    script:
        "../scripts/report.py"


# printed last: what was unavailable and how to get it
onsuccess:
    for line in [*missing.describe_missing(RESULTS), *allowed.describe(RESULTS)]:
        print(line, file=sys.stderr)
