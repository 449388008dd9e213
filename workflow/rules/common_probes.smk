# Questions about models and answers: files of weights, files of every row of the sheet, what the
# tables and the report are made of.


def weights(model):
    """Files of a model that the workflow itself makes or finds on disk, its adapter's too."""
    row = MODELS[model]
    kind, _, place = row["source"].partition(":")
    made = {
        "control": [f"<results>/models/control-{place}"],
        "gguf": [f"<results>/models/unpacked-{place}"],
    }
    own = [place] if kind == "folder" else []
    if row.get("adapter"):
        own.append(row["adapter"].partition(":")[2])
    return [*made.get(kind, []), *files(own)]


def packed(package):
    """Kind and pinned sha256 of the models that a package holds as a GGUF file."""
    rows = [row for row in MODELS.values() if row["source"] == f"gguf:{package}"]
    return {name: rows[0][name] for name in ("kind", "revision")}


def by_method(method, paper=None):
    """Rows of the experiment sheet whose method is this module."""
    return [row for row in probes(paper=paper) if row["method"].split("-")[0] == method]


def has_controls():
    """Whether a control model answers questions of the embedded world: then there is calibration."""
    return any(
        row["benchmark"] in ("world_big", "world_lite")
        and MODELS[row["model"]]["source"].startswith("control:")
        for row in by_method("sentence", "bear")
    )


def score_files():
    """The score file of every row that BEAR's tables show, in the sheet's order."""
    return [answers_of(row) for row in by_method("sentence", "bear")]


def choice_files():
    """What was chosen in every row of method choice, in the sheet's order."""
    return [answers_of(row) for row in by_method("choice")]


def inferred_rows():
    """What the models of the invented world are asked."""
    return [
        {
            "paper": "bear",
            "benchmark": "world_inferred",
            "prompt": "templates",
            "method": "sentence",
            "model": model,
        }
        for model in INFERRED
    ]


def of_benchmarks(kind):
    """One parquet file of every benchmark that is probed."""
    return [
        f"<results>/benchmarks/{benchmark}/{kind}.parquet"
        for benchmark in probed("bear")
    ]


def own_graphs(paper):
    """The own graphs whose benchmarks are probed for a paper."""
    return [
        name
        for name in GRAPHS
        if any(GRAPH_OF.get(benchmark) == name for benchmark in probed(paper))
    ]


def built():
    """The benchmarks of BEAR's kind that are probed and were not read as they are."""
    return [b for b in probed("bear") if b != "lama" and "released" not in b]


def funnels():
    """The construction of every benchmark that is constructed and probed."""
    sets = {f"{origin_of(b)}_big" for b in built()}
    return [f"<results>/benchmarks/{name}/funnel.parquet" for name in sorted(sets)]


def side_files():
    """What is made beside the report: other names in constructed sets, facts out of dumps."""
    sets = built() + constructed()
    # no endpoint has other names of an own graph's entities
    origins = sorted({origin_of(b) for b in sets} - set(GRAPHS))
    names = [f"<results>/benchmarks/{o}_big/aliases.parquet" for o in origins]
    names += [f"<results>/sources/{graph}/allows.tsv" for graph in GRAPHS]
    return names + [
        f"<results>/knowledge/{dump}/facts.parquet" for dump in sorted(DUMPS)
    ]


def papers():
    """Whether the sheet asks something for a paper's tables, in the order of printing."""
    return {
        "bear": bool(by_method("sentence", "bear")),
        "ontoprobe": bool(probes(paper="ontoprobe")),
        "attributes": bool(probes(paper="attributes")),
        "autoprompt": bool(probes(paper="autoprompt")),
    }


def results_files():
    """RESULTS of the papers that are asked; their printed tables lie in folders of that name."""
    return [
        f"<results>/tables/{name}.parquet" for name, asked in papers().items() if asked
    ]


def asked_files(*kinds):
    """The questions of every benchmark that is probed; or files that belong to them, where options
    and templates do."""
    return [
        f"<results>/benchmarks/{name}/{kind}.parquet"
        for paper in papers()
        for name in probed(paper)
        for kind in (kinds or ["examples" if paper == "autoprompt" else "items"])
        if not kinds or paper != "autoprompt"
    ]


def measured():
    """Numbers of earlier runs that travel with the project."""
    folder = Path(sheets.located("resources")) / "measured"
    return sorted(str(p) for p in folder.glob("*.tsv") if p.stem != "bench")


def chapters():
    """Chapters of the report that this sheet has something for, in the order of printing."""
    asked = papers()
    wanted = {
        "claims": any(asked.values()),
        "bear": asked.pop("bear"),
        "sources": bool(comparisons()),
        **asked,
        "inferences": bool(inferred_rows()),
        "measured": any(papers().values()),
    }
    return [
        f"<results>/report/chapters/{name}.json"
        for name, is_wanted in wanted.items()
        if is_wanted
    ]


def attribute_facts():
    """The facts of the graph that the attributes are built on."""
    chosen = SETTINGS.attributes.graph
    found = [f"<results>/knowledge/{chosen}/facts.parquet"]
    return found + (
        ["<results>/knowledge/trex/dates.parquet"] if chosen == "trex" else []
    )


def templated():
    """The relations that have a template, in the general table or in those that the attributes are
    worded by.
    """
    general = f"{sheets.located('resources')}/templates/templates.tsv"
    try:
        tables = [
            sheets.read_table(path)
            for path in [general, *files(SETTINGS.wording.tables)]
        ]
        return sorted({row["relation"] for rows in tables for row in rows})
    except (sheets.SheetError, KeyError) as problem:
        raise WorkflowError(f"templates: {problem}") from None
