# tables: numbers, figures, report.
# Needs <results>/scores/, <results>/benchmarks/ and the published figures; makes <results>/tables/
# and <results>/report/.


from kgprobe.benchmarks import allowed
from kgprobe.sources import missing

#: BEAR's printed tables, and its figures
FIGURES = [f"bear_{what}_{b}" for b in probed("bear") for what in ("size", "relations")]
FIGURES += ["calibration"] if has_controls() else []


rule tabulate:
    input:
        scores=score_files(),
        contentless=beside_of(by_method("sentence", "bear")),
        twins=[answers_of(row) for row in floor_rows(by_method("sentence", "bear"))],
        questions=of_benchmarks("items"),
        candidates=of_benchmarks("candidates"),
        prompts=of_benchmarks("prompts"),
        relations=of_benchmarks("relations"),
        taught=["<results>/models/taught.parquet"] if has_controls() else [],
        published=[
            "<resources>/published/bear_leaderboard.tsv",
            "<resources>/published/bear_remeasured.tsv",
        ],
    output:
        results="<results>/tables/bear.parquet",
        texts=directory("<results>/tables/bear"),
    log:
        "<logs>/tables/bear.log",
    threads: 1
    params:
        code=code("tabulate"),
        experiments=by_method("sentence", "bear"),
        models=MODELS,
        twins=floor_rows(by_method("sentence", "bear")),
        seed=SETTINGS.seed,
    script:
        "../scripts/tabulate.py"


rule tabulate_inferences:
    input:
        scores=[answers_of(row) for row in inferred_rows()],
        questions="<results>/benchmarks/world_inferred/items.parquet",
        candidates="<results>/benchmarks/world_inferred/candidates.parquet",
    output:
        results="<results>/tables/inferences.parquet",
        texts=directory("<results>/tables/inferences"),
        chapter="<results>/report/chapters/inferences.json",
    log:
        "<logs>/tables/inferences.log",
    threads: 1
    params:
        code=code("tabulate_inferences"),
        experiments=inferred_rows(),
        seed=SETTINGS.seed,
    script:
        "../scripts/tabulate_inferences.py"


rule compare_access:
    input:
        pulled=pulled_facts(),
        dumps=expand("<results>/sources/{dump}/facts.parquet", dump=compared_dumps()),
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


rule chapter_sources:
    input:
        tables=comparisons(),
        differences=(
            rules.compare_ontology.output.differences if compared("ontology") else []
        ),
        funnels=expand(
            "<results>/benchmarks/{benchmark}/funnel.parquet", benchmark=constructed()
        ),
        choices=expand(
            "<results>/benchmarks/{benchmark}/choice.parquet", benchmark=constructed()
        ),
        coverage="<results>/sources/wikidata/coverage.parquet" if constructed() else [],
        names="<resources>/templates/bear_relations.tsv",
    output:
        chapter="<results>/report/chapters/sources.json",
    log:
        "<logs>/tables/chapter_sources.log",
    threads: 1
    params:
        code=code("chapter_sources"),
        circular="bear" in SETTINGS.sources.wikidata.holds,
    script:
        "../scripts/chapter_sources.py"


rule tabulate_attributes:
    input:
        answers=attribute_answers(),
        contentless=beside_of(attribute_rows()),
        floors=[answers_of(row) for row in floor_rows(attribute_rows())],
        floor_golds=[
            made(row)["golds"]
            for row in floor_rows(attribute_rows())
            if method_of(row).endswith("fill")
        ],
        formed=list(map(answers_of, form_rows("attributes"))),
        golds=attribute_golds(),
        examples=of_attributes("examples"),
        sizes=of_attributes("sizes"),
        questions=of_attributes("items"),
        candidates=of_attributes("candidates"),
        prompts=of_attributes("prompts"),
        edges="<results>/benchmarks/graph/edges.parquet",
        literals="<results>/benchmarks/graph/literals.parquet",
        ids="<results>/benchmarks/graph/ids.parquet",
        taught=attribute_taught(),
        aliases=attribute_aliases(),
        published="<resources>/published/attributes_scores.tsv",
    output:
        numbers="<results>/tables/attributes.parquet",
        texts=directory("<results>/tables/attributes"),
    log:
        "<logs>/tables/attributes.log",
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=code("tabulate_attributes"),
        experiments=attribute_rows(),
        floors=floor_rows(attribute_rows()),
        formed=form_rows("attributes"),
        models=MODELS,
        options=attribute_options(),
        seed=SETTINGS.seed,
    script:
        "../scripts/tabulate_attributes.py"


rule chapter_attributes:
    input:
        numbers="<results>/tables/attributes.parquet",
        answers=attribute_answers(),
        golds=attribute_golds(),
        examples=of_attributes("examples"),
        funnels=of_attributes("funnel"),
        sensitivity=of_attributes("sensitivity"),
        questions=of_attributes("items"),
        candidates=of_attributes("candidates"),
        prompts=of_attributes("prompts"),
        aliases=attribute_aliases(),
        published="<resources>/published/attributes_scores.tsv",
        names=[
            attribute_worded() or "<resources>/templates/templates.tsv",
            *files(SETTINGS.wording.tables),
        ],
    output:
        chapter="<results>/report/chapters/attributes.json",
    log:
        "<logs>/tables/chapter_attributes.log",
    threads: 1
    params:
        code=code("chapter_attributes"),
        experiments=attribute_rows(),
        models=MODELS,
        thresholds=SETTINGS.attributes.thresholds,
    script:
        "../scripts/chapter_attributes.py"


rule tabulate_ontoprobe:
    input:
        answers=onto_answers(),
        contentless=beside_of(onto_rows()),
        floors=[answers_of(row) for row in floor_rows(onto_rows())],
        formed=list(map(answers_of, form_rows("ontoprobe"))),
        top=[made(row)["top"] for row in onto_rows() if row["method"] == "cloze"],
        reasoned=[made(row)["ranks"] for row in by_method("reason", "ontoprobe")],
        premises=[made(row)["premises"] for row in by_method("reason", "ontoprobe")],
        forms=[made(row)["forms"] for row in by_method("reason", "ontoprobe")],
        questions=[f"<results>/benchmarks/{b}/items.parquet" for b in onto_sets()],
        candidates=[f"<results>/benchmarks/{b}/candidates.parquet" for b in onto_sets()],
        prompts=[f"<results>/benchmarks/{b}/prompts.parquet" for b in onto_sets()],
        funnels=[
            f"<results>/benchmarks/{b}/funnel.parquet"
            for b in onto_sets()
            if not b.endswith("_lite")
        ],
        taught=(
            "<results>/models/taught_ontology.parquet"
            if any(b.startswith("onto_world") for b in onto_sets())
            else []
        ),
        published=[
            "<resources>/published/ontoprobe_configurations.tsv",
            "<resources>/published/ontoprobe_memorizing.tsv",
            "<resources>/published/ontoprobe_sizes.tsv",
            "<resources>/published/ontoprobe_choice.tsv",
            "<resources>/published/ontoprobe_reasoning.tsv",
        ],
        # RESULTS of other runs, under another mode or other switches
        beside=onto_beside(),
        chosen=choice_files(),
        options=[made(row)["options"] for row in by_method("choice")],
        choices=[
            f"<results>/benchmarks/{row['benchmark']}/choices.parquet"
            for row in by_method("choice")
        ],
        shipped=lambda w: shipped_split(),
    output:
        results="<results>/tables/ontoprobe.parquet",
        texts=directory("<results>/tables/ontoprobe"),
        chapter="<results>/report/chapters/ontoprobe.json",
    log:
        "<logs>/tables/ontoprobe.log",
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("tabulate_ontoprobe"),
        experiments=onto_rows(),
        floors=floor_rows(onto_rows()),
        formed=form_rows("ontoprobe"),
        reasoned=by_method("reason", "ontoprobe"),
        chosen=by_method("choice"),
        models=MODELS,
        settings=asdict(SETTINGS.ontoprobe),
        switches=switches(),
        seed=SETTINGS.seed,
    script:
        "../scripts/tabulate_ontoprobe.py"


rule chapter_bear:
    input:
        results="<results>/tables/bear.parquet",
        scores=score_files(),
        questions=of_benchmarks("items"),
        funnels=funnels(),
        names=[
            "<resources>/templates/bear_relations.tsv",
            *expand(rules.word_graph.output.relations, graph=own_graphs("bear")),
        ],
    output:
        chapter="<results>/report/chapters/bear.json",
        figures=[f"<results>/report/figures/{name}.svg" for name in FIGURES],
    log:
        "<logs>/tables/chapter_bear.log",
    threads: 1
    params:
        code=code("chapter_bear"),
        experiments=by_method("sentence", "bear"),
        models=MODELS,
        seed=SETTINGS.seed,
        descriptions=BENCHMARKS,
    script:
        "../scripts/chapter_bear.py"


rule headline:
    input:
        results=results_files(),
        questions=asked_files(),
        measured=measured(),
    output:
        text="<results>/tables/headline.txt",
        chapter="<results>/report/chapters/measured.json",
    log:
        "<logs>/tables/headline.log",
    threads: 1
    params:
        code=code("headline"),
    script:
        "../scripts/headline.py"


rule claims:
    input:
        results=results_files(),
        claims="<resources>/published/claims.tsv",
        published=[f"<resources>/published/{name}.tsv" for name in """
                attributes_scores attributes_sizes autoprompt_facts autoprompt_inference
                autoprompt_relation_extraction autoprompt_relations autoprompt_sentiment
                bear_leaderboard bear_remeasured ontoprobe_choice ontoprobe_configurations
                ontoprobe_memorizing ontoprobe_reasoning ontoprobe_sizes
                """.split()],
    output:
        claims="<results>/tables/claims.parquet",
        rows=directory("<results>/tables/claim_rows"),
        chapter="<results>/report/chapters/claims.json",
    log:
        "<logs>/tables/claims.log",
    threads: 1
    params:
        code=code("claims"),
        models=MODELS,
    script:
        "../scripts/claims.py"


rule report:
    input:
        results=results_files(),
        tables=[path.removesuffix(".parquet") for path in results_files()],
        answers=[answers_of(row) for row in EXPERIMENTS],
        top=[made(row)["top"] for row in by_method("cloze")],
        questions=asked_files(),
        options=asked_files("candidates", "prompts"),
        # the questions of two methods beside a benchmark's own
        beside=sorted(
            {
                f"<results>/benchmarks/{row['benchmark']}/{name}.parquet"
                for method, name in (("choice", "choices"), ("reason", "reasoning"))
                for row in by_method(method, "ontoprobe")
            }
        ),
        chapters=chapters(),
        allows=[f"<results>/sources/{graph}/allows.parquet" for graph in GRAPHS],
        names=[
            "<resources>/templates/bear_relations.tsv",
            *expand(rules.word_graph.output.relations, graph=own_graphs("bear")),
        ],
    output:
        page="<results>/report/index.html",
        pages=directory("<results>/report/pages"),
    log:
        "<logs>/tables/report.log",
    threads: 1
    params:
        code=code("report", "tables/report/html"),
        experiments=EXPERIMENTS,
        models=MODELS,
        descriptions=BENCHMARKS,
        configs=[os.path.relpath(path) for path in GIVEN],
    script:
        "../scripts/report.py"


# said last, what could not be had and how to get it
onsuccess:
    for line in [*missing.told(RESULTS), *allowed.told(RESULTS)]:
        print(line, file=sys.stderr)
