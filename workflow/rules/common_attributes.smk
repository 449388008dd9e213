# Questions about the attributes of a knowledge graph: which are built, with which prompts,
# answers and tables.


def attributes():
    """The graph-attribute benchmarks that some probe asks, all of them when none does."""
    return [name for name in ATTRIBUTES if name in probed(None)] or ATTRIBUTES


def few_prompts(wildcards):
    """How many prompts a relation: models behind an API are asked few of the graph attributes'."""
    is_api = MODELS[wildcards.model]["kind"] == "api"
    return SETTINGS.wording.api if is_api and wildcards.benchmark in ATTRIBUTES else 0


def pararel():
    """The folder of ParaRel's patterns, where they are asked for."""
    chosen = SETTINGS.wording.pararel
    return files([chosen]) if chosen else []


def attribute_rows():
    """Rows of the graph-attribute benchmarks without a form, in the sheet's order."""
    return [row for row in probes(paper="attributes") if not in_form(row)]


def attribute_answers():
    """The answers of every one of these rows, in their order."""
    return [answers_of(row) for row in attribute_rows()]


def attribute_golds():
    """Ranks of the golds beside every file of fillings, those in a form among them."""
    return [made(row)["golds"] for row in by_method("fill", "attributes")]


def attribute_nouns(attribute):
    """relation -> noun phrase and verb of its written templates, which word two steps."""
    if attribute != "two_steps" or own_ids():
        return {}
    general = f"{sheets.located('resources')}/templates/templates.tsv"
    paths = [general, *files(SETTINGS.wording.tables)]
    return nouns(row for path in paths for row in sheets.read_table(path))


def taught_beside(attribute, kind):
    """ITEMS or CANDIDATES of what the control models are taught beside the facts of the world: no
    two steps may have a shortcut there."""
    if attribute != "two_steps" or SETTINGS.attributes.graph != "world":
        return []
    return [f"<results>/benchmarks/onto_world/{kind}.parquet"]


def of_attributes(kind):
    """One parquet file of every graph-attribute benchmark that is probed."""
    return [
        f"<results>/benchmarks/{name}/{kind}.parquet" for name in probed("attributes")
    ]


def taught_attributes(kind):
    """One parquet file of every attribute whose examples the control models are taught: those of the
    config where they are built on the embedded world. What is probed changes no model.
    """
    if SETTINGS.attributes.graph != "world":
        return []
    return [
        f"<results>/benchmarks/{name}/{kind}.parquet"
        for name in SETTINGS.control.attributes
    ]


def attribute_aliases():
    """Other names of the answers, where a generated text may equal one of them; no endpoint has
    those of an own graph's entities.
    """
    if SETTINGS.wording.match == "label" or own_ids():
        return []
    return "<results>/benchmarks/graph/aliases.parquet"


def own_ids():
    """Whether the attributes are built on a graph whose ids are its own."""
    own = GRAPHS.get(SETTINGS.attributes.graph)
    return own is not None and own.ids == "own"


def attribute_section():
    """The section of the own graph that the attributes are built on, if its ids are its own."""
    return asdict(GRAPHS[SETTINGS.attributes.graph]) if own_ids() else None


def attribute_worded():
    """The sentences of the relations of such a graph, in place of ours."""
    graph = SETTINGS.attributes.graph
    return f"<results>/benchmarks/own/{graph}/templates.tsv" if own_ids() else []


def attribute_linked():
    """The facts of Wikidata whose objects count as true answers beside those of the graph."""
    if SETTINGS.attributes.golds == "graph":
        return []
    if own_ids():
        raise WorkflowError(
            "config: attributes.golds is wikidata, but the ids of attributes.graph are its own; "
            "write graph, or ids: wikidata in its section"
        )
    return f"<results>/knowledge/{attribute_source()}/facts.parquet"


def attribute_source():
    """Where other names of the attributes' entities, and their properties, are pulled from."""
    return "world" if SETTINGS.attributes.graph == "world" else "wikidata"


def attribute_properties():
    """The property dump of the attributes' graph, whose labels word relations without template."""
    source = SETTINGS.attributes.graph if own_ids() else attribute_source()
    return f"<results>/sources/{source}/properties.parquet"


def attribute_taught():
    """What the control models were taught, where they answer the graph-attribute benchmarks."""
    controls = [
        row
        for row in probes(paper="attributes")
        if MODELS[row["model"]]["source"].startswith("control:")
    ]
    return "<results>/models/taught.parquet" if controls else []


def attribute_options():
    """How the metrics of the graph-attribute benchmarks are read."""
    names = ("ambiguous_denominator", "intersect")
    return {name: getattr(SETTINGS.wording, name) for name in names}
