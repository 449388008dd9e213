# Reads config and sheets, checks every name before anything runs, and answers the questions that
# several stages ask. No path of a result is built here: each stands in the rule that makes it.
import os
import sys
from pathlib import Path

from kgprobe import sheets
from kgprobe.job import sole_run
from kgprobe.probes import prompt_settings

#: benchmark -> the rule's folder of origin; what `experiments.tsv` may name
BENCHMARKS = {
    "bear_big": "constructed from the Wikidata pull",
    "bear_lite": "constructed from the Wikidata pull",
    "world_big": "constructed from the embedded world",
    "world_lite": "constructed from the embedded world",
    "bear_released": "the released BEAR",
    "bear_big_released": "the released BEAR-big",
    "onto_world": "OntoProbe's tasks from the ontology of the embedded world",
    "onto_world_lite": "a small part of onto_world, for options scored as sentences",
    "onto_built": "OntoProbe's tasks from the pulled ontology",
    "onto_built_lite": "a small part of onto_built, for options scored as sentences",
    "onto_released": "the released OntoProbe",
    "onto_released_lite": "a small part of the released OntoProbe",
}
#: the nine attributes of a knowledge graph: benchmarks of the graph that the config chooses
ATTRIBUTES = [
    "symmetry",
    "asymmetry",
    "bidirectional",
    "hierarchy",
    "composite",
    "paths",
    "entity_centric",
    "bias",
    "ambiguous",
]
BENCHMARKS |= {name: "an attribute of the knowledge graph" for name in ATTRIBUTES}
#: tasks for searched prompts -> the parts of a source that they are made of
PROMPT_TASKS = {
    "auto_lama": ("lama", ["trex_original"]),
    "auto_lama_trex": ("lama", ["trex_extend"]),
    "auto_lama_roberta": ("lama", ["trex_original"]),
    "auto_re": ("trex_sentences", [""]),
    "auto_re_perturbed": ("trex_sentences", [""]),
    "auto_sst2": ("sst2", ["sentiment-train", "sentiment-dev", "sentiment-test"]),
    "auto_sick": (
        "sick",
        ["SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"],
    ),
    "auto_world": ("world", []),
}
PROMPT_TASKS |= {f"auto_sick_{n}way": PROMPT_TASKS["auto_sick"] for n in (2, 3)}
BENCHMARKS |= {
    name: f"a prompt task of {PROMPT_TASKS[name][0]}" for name in PROMPT_TASKS
}
#: words and wordings of LAMA that fact retrieval and relation extraction need beside their facts
LAMA_FILES = ["relations.jsonl", "optiprompt", "vocab/common_vocab_cased.txt"]


PROMPTS = ["templates", "soft", *prompt_settings.PROMPTS]


def schema(name):
    """A JSON schema of workflow/schemas."""
    return sheets.read_schema(
        Path(workflow.basedir) / "workflow" / "schemas" / f"{name}.schema.json"
    )


def switches(*names):
    """The chosen values of OntoProbe's switches: all, or those named."""
    from kgprobe.benchmarks.ontoprobe_modes import resolve

    chosen = config["ontoprobe"]
    found = resolve(chosen["mode"], chosen["switches"])
    return {name: found[name] for name in names or found}


def checked():
    """(models by name, experiments): the sheets, every name in them known, or one clear error."""
    sheets.check_config(config, schema("config"))
    where = config["sheets"]
    models = sheets.by_name(
        sheets.read_sheet(where["models"], schema("models")), where["models"]
    )
    rows = sheets.read_sheet(where["experiments"], schema("experiments"))
    sheets.check_experiments(rows, where["experiments"], models, BENCHMARKS, PROMPTS)
    if wrong := prompt_settings.problems(rows):
        raise sheets.SheetError(f"{where['experiments']}, " + "\n  ".join(wrong))
    try:
        switches()
    except ValueError as problem:
        raise sheets.SheetError(f"config: {problem}") from None
    return models, rows


try:
    MODELS, EXPERIMENTS = checked()
except sheets.SheetError as problem:
    raise WorkflowError(str(problem)) from None


# jobs read this file, too: only the process that was started by hand takes the folder's lock
if workflow.is_main_process and not {
    "-n",
    "--dry-run",
    "--dryrun",
    "--unlock",
    "--lint",
} & set(sys.argv):
    try:
        sole_run()
    except RuntimeError as problem:
        raise WorkflowError(str(problem)) from None


wildcard_constraints:
    source="wikidata|dbpedia|world|world_dbpedia",
    benchmark="|".join(BENCHMARKS),
    prompt="|".join(PROMPTS),
    method="|".join(sorted({row["method"] for row in EXPERIMENTS})),
    model="|".join(sorted(MODELS)),
    kind="masked|causal|seq2seq",


def code(*modules):
    """Module files of the package, named as inputs so that editing one reruns its jobs alone."""
    package = Path(os.path.relpath(workflow.basedir)) / "src" / "kgprobe"
    return [str(package / f"{module}.py") for module in modules]


def files(paths):
    """Paths of the config with their environment variables filled in; each must exist."""
    found = [sheets.expand(path) for path in paths]
    for path in found:
        if not Path(path).exists():
            raise WorkflowError(
                f"config: no such file or folder: {path}\n"
                "  set KGPROBE_DATA to the folder of the real data, or correct the path"
            )
    return found


def probes(benchmark=None, paper=None):
    """Rows of the experiment sheet, restricted to a benchmark or paper."""
    return [
        row
        for row in EXPERIMENTS
        if (benchmark in (None, row["benchmark"])) and (paper in (None, row["paper"]))
    ]


def probed(paper):
    """The benchmarks that the experiments of a paper name, in the order of the sheet."""
    return list(dict.fromkeys(row["benchmark"] for row in probes(paper=paper)))


def of_model(wildcards):
    """The columns of models.tsv that an answer depends on; its notes change none."""
    row = MODELS[wildcards.model]
    return {key: sheets.expand(row.get(key, "")) for key in OF_MODEL}


def answering(kind):
    """The modules that fill gaps for a kind of model."""
    if kind == "api":
        return [
            "probes/models/api",
            "probes/models/api_http",
            "probes/scoring/fill_api",
            "probes/wordings",
        ]
    own = ["probes/models/continuation", "probes/scoring/fill_text"]
    if kind == "masked":
        own = [
            "probes/models/gaps",
            "probes/models/masked",
            "probes/models/last_layer",
            "probes/scoring/fill_masked",
        ]
    return own + [
        "probes/models/batching",
        "probes/models/head",
        "probes/models/load",
        "probes/prompts/templates",
        "probes/scoring/decoding",
        "probes/scoring/encode",
        "probes/scoring/gap_text",
    ]


def accelerators():
    """1 where this machine has an NVIDIA device, so that one probe at a time uses it."""
    return int(Path(os.sep, "dev", "nvidia0").exists())


def check_data():
    """Files that the experiments need and that nothing here makes: missing ones are told at once."""
    for benchmark in {row["benchmark"] for row in EXPERIMENTS}:
        bear, wikidata = config["sources"]["bear"], config["sources"]["wikidata"]
        if benchmark.startswith("onto_released"):
            onto = config["sources"]["ontoprobe"]
            if onto["access"] == "local":
                files([f"{onto['folder']}/memorizing", f"{onto['folder']}/ontology"])
        elif benchmark.endswith("_released") and bear["access"] == "local":
            name = "BEAR-big" if benchmark.startswith("bear_big") else "BEAR"
            files([f"{bear['folder']}/{name}"])
        if benchmark in ("bear_big", "bear_lite") and wikidata["access"] == "local":
            files(wikidata["files"])
        if benchmark in PROMPT_TASKS:
            source, names = PROMPT_TASKS[benchmark]
            data_parts(source, names)
            data_parts(
                "lama", LAMA_FILES if source in ("lama", "trex_sentences") else []
            )


def data_parts(source, names):
    """Files or folders of a data set in parts, one error where they are not to be had.

    Where access is live they are downloaded first; "" stands for all that is downloaded.
    """
    if not names:
        return []
    chosen = config["sources"][source]
    if chosen["access"] == "absent":
        raise WorkflowError(
            f"config: sources.{source}.access is absent, but {', '.join(names) or source} is "
            "needed; write local (and the folder) or live, or leave out the experiments that need it"
        )
    if chosen["access"] == "live":
        made = [name for archive in chosen["archives"] for name in archive["parts"]]
        names = [name for n in names for name in ([n] if n else made)]
    paths = [f"{chosen['folder']}/{name}".rstrip("/") for name in names]
    return paths if chosen["access"] == "live" else files(paths)


def lama(*names):
    """Parts of the folder of LAMA's files, such as lpaqa."""
    return data_parts("lama", list(names))


check_data()


def check_servers():
    """The address of a server must be known before anything runs."""
    variable = config["api"]["url_variable"]
    for row in EXPERIMENTS:
        if MODELS[row["model"]]["kind"] == "api" and not os.environ.get(variable):
            raise WorkflowError(
                f"{config['sheets']['experiments']}, line {row['_line']}: set the environment "
                f"variable {variable} to the base URL of the server of {row['model']!r}, for "
                "example http://127.0.0.1:8000/v1"
            )


check_servers()


EMBEDDED = {
    "access": "embedded",
    "endpoint": "local",
    "snapshot": "embedded",
    "files": [],
    "statements": "facts",
}


def graph(source):
    """Which of the two graphs a source speaks: the world's facts have Wikidata's shape."""
    return "dbpedia" if source.endswith("dbpedia") else "wikidata"


def settings(source):
    """The access settings of a source; the world is always embedded."""
    if source.startswith("world"):
        return EMBEDDED
    return config["sources"][source]


#: which pull a constructed set is made from
ORIGIN = {"bear": "wikidata", "world": "world"}
#: OntoProbe set -> its ontology, and the pull whose statements say how well an instance is known
ONTOLOGIES = {"world": ("world_ontology", "world"), "built": ("ontology", "wikidata")}
#: dumps that statements are read from, by name
DUMPS = config["sources"]["dumps"]
#: what an embedded dump of each form is
RENDERED = {
    "json": "results/sources/world/dumps/wikidata.json.gz",
    "truthy": "results/sources/world/dumps/wikidata.nt.bz2",
    "ntriples": "results/sources/world/dbpedia.nt",
}


def rdf(wildcards):
    """RDF files that a local endpoint serves for a source; none when it is pulled live."""
    return rdf_of(wildcards.source)


def rdf_of(source):
    """The same for the source's name."""
    chosen = settings(source)
    if chosen["access"] == "embedded":
        return [f"results/sources/world/{graph(source)}.nt"]
    return files(chosen["files"]) if chosen["access"] == "local" else []


def dump_file(wildcards):
    """The file of a dump: rendered, found on disk, or to be downloaded."""
    chosen = DUMPS[wildcards.dump]
    if chosen["access"] == "embedded":
        return RENDERED[chosen["form"]]
    return files([chosen["file"]])[0] if chosen["access"] == "local" else chosen["file"]


def downloads():
    """Single files that are fetched: live dumps, and the archive of T-REx."""
    found = {name: dump for name, dump in DUMPS.items() if dump["access"] == "live"}
    trex = config["sources"]["trex"]
    if trex["access"] == "live":
        found["trex"] = {"file": trex["path"], "url": trex["url"]}
    return found


def compared(what):
    """Whether the config asks for a comparison: access, ontology or bear."""
    return what in config["comparisons"]


def compared_dumps():
    """Dumps of Wikidata, which the pull is compared with."""
    return sorted(name for name, dump in DUMPS.items() if dump["form"] != "ntriples")


def pulled_facts():
    """The pull that dumps are compared with: of the world, or of Wikidata."""
    embedded = any(dump["access"] == "embedded" for dump in DUMPS.values())
    return f"results/sources/{'world' if embedded else 'wikidata'}/facts.parquet"


def comparisons():
    """The tables that the config asks for."""
    names = {
        "access": "access_agreement",
        "ontology": "ontology_agreement",
        "bear": "bear_drift",
    }
    return [f"results/tables/{names[what]}.parquet" for what in names if compared(what)]


def constructed():
    """Constructed sets that are compared, though no probe may ask them."""
    return ["bear_big"] if compared("bear") else []


def trex_dump(wildcards=None):
    """The folder or zip of T-REx files."""
    chosen = config["sources"]["trex"]
    if chosen["access"] == "embedded":
        return "results/sources/world/trex"
    return chosen["path"] if chosen["access"] == "live" else files([chosen["path"]])[0]


def trex_members():
    """Names of the dump files, without their ending: one shard each."""
    if config["sources"]["trex"]["access"] == "embedded":
        return ["re-nlg_0-10000"]
    from kgprobe.sources.trex import PUBLISHED, members

    if not Path(trex_dump()).exists():
        return PUBLISHED
    return [Path(name).stem for name in members(Path(trex_dump()))]


def released_bear(wildcards):
    """The folder of the released set; it is downloaded first where access is live."""
    return released("bear", "BEAR-big" if wildcards.size else "BEAR")


def released(source, part):
    """A folder of a released data set; it is downloaded first where access is live."""
    chosen = config["sources"][source]
    path = f"{chosen['folder']}/{part}"
    return path if chosen["access"] == "live" else files([path])[0]


def weights(wildcards):
    """Files of the model that the workflow itself makes or finds on disk."""
    kind, _, place = MODELS[wildcards.model]["source"].partition(":")
    if kind == "control":
        return f"results/models/control-{place}"
    return files([place])[0] if kind == "folder" else []


def by_method(method, paper=None):
    """Rows of the experiment sheet whose method is this module."""
    return [row for row in probes(paper=paper) if row["method"].split("-")[0] == method]


def has_controls():
    """Whether a control model answers questions of the embedded world: then there is calibration."""
    return any(
        row["benchmark"].startswith("world_")
        and MODELS[row["model"]]["source"].startswith("control:")
        for row in by_method("sentence", "bear")
    )


def several():
    """Whether some benchmark is answered by more than one probe, so that differences exist."""
    rows = by_method("sentence", "bear")
    return len({row["benchmark"] for row in rows}) < len(rows)


def score_files():
    """The score file of every row that BEAR's tables show, in the sheet's order."""
    return [
        expand(rules.score.output.scores, **row)[0]
        for row in by_method("sentence", "bear")
    ]


def fill_files(paper=None):
    """The fillings of every row of method fill, in the sheet's order."""
    return [
        expand(rules.fill.output.fills, **row)[0] for row in by_method("fill", paper)
    ]


def choice_files():
    """What was chosen in every row of method choice, in the sheet's order."""
    return [expand(rules.choose.output.chosen, **row)[0] for row in by_method("choice")]


def soft_files():
    """Ranks by soft prompts and of reasoning, for every row of these methods, in the sheet's order."""
    makers = {"soft": rules.rank_soft, "reason": rules.reason}
    return [
        expand(rule.output.ranks, **row)[0]
        for method, rule in makers.items()
        for row in by_method(method)
    ]


def prompted(wildcards):
    """The folder of soft prompts, for reasoning with soft templates."""
    if any(s.startswith("soft+") for s in config["ontoprobe"]["soft"]["schemes"]):
        return expand(rules.train_soft.output.prompts, **wildcards)[0]
    return []


def shipped_split():
    """The released files that say which premises were memorised, where they are asked for."""
    is_asked = switches("mc_split")["mc_split"] == "shipped"
    on_release = any(row["benchmark"] == "onto_released" for row in by_method("choice"))
    return released("ontoprobe", "gpt/reasoning") if is_asked and on_release else []


def onto_beside():
    """Table 4 of every run that stands beside this one, in the config's order."""
    return [
        f"{folder}/tables/ontoprobe_memorising.parquet"
        for folder in files(config["ontoprobe"]["beside"].values())
    ]


def of_benchmarks(kind):
    """One parquet file of every benchmark that is probed."""
    return [
        f"results/benchmarks/{benchmark}/{kind}.parquet" for benchmark in probed("bear")
    ]


def funnels():
    """The construction of every benchmark that is constructed and probed."""
    origins = {b.split("_")[0] for b in probed("bear") if "released" not in b}
    return [
        f"results/benchmarks/{origin}_big/funnel.parquet" for origin in sorted(origins)
    ]


def attributes():
    """The graph-attribute benchmarks that some probe asks, all of them when none does."""
    return [name for name in ATTRIBUTES if name in probed(None)] or ATTRIBUTES


def few_prompts(wildcards):
    """How many prompts a relation: models behind an API are asked few of the graph attributes'."""
    is_api = MODELS[wildcards.model]["kind"] == "api"
    return (
        config["wording"]["api"] if is_api and wildcards.benchmark in ATTRIBUTES else 0
    )


def wordnet():
    """The folder of the WordNet database, where synonyms are asked for."""
    chosen = config["wording"]
    return (
        files([chosen["wordnet"]]) if chosen["synonyms"] and probes(paper="kg") else []
    )


def pararel():
    """The folder of ParaRel's patterns, where they are asked for."""
    chosen = config["wording"]["pararel"]
    return files([chosen]) if chosen else []


def attribute_answers():
    """The answers of every row of the graph-attribute benchmarks, in the sheet's order."""
    return [
        expand(
            (
                rules.score.output.scores
                if row["method"].startswith("sentence")
                else rules.fill.output.fills
            ),
            **row,
        )[0]
        for row in probes(paper="kg")
    ]


def attribute_golds():
    """Ranks of the golds beside every file of fillings."""
    return [
        expand(rules.fill.output.golds, **row)[0] for row in by_method("fill", "kg")
    ]


def of_attributes(kind):
    """One parquet file of every graph-attribute benchmark that is probed."""
    return [f"results/benchmarks/{name}/{kind}.parquet" for name in probed("kg")]


def world_attributes(kind):
    """The same where they are built on the embedded world, whose facts control models are taught."""
    return of_attributes(kind) if config["attributes"]["graph"] == "world" else []


def attribute_aliases():
    """Other names of the answers, where a generated text may equal one of them."""
    if config["wording"]["match"] == "label":
        return []
    return "results/benchmarks/graph/aliases.parquet"


def attribute_source():
    """Where the other names of the attributes' entities are pulled from."""
    return "world" if config["attributes"]["graph"] == "world" else "wikidata"


def attribute_taught():
    """What the control models were taught, where they answer the graph-attribute benchmarks."""
    controls = [
        row
        for row in probes(paper="kg")
        if MODELS[row["model"]]["source"].startswith("control:")
    ]
    return "results/models/taught.parquet" if controls else []


def attribute_options():
    """How the metrics of the graph-attribute benchmarks are read."""
    names = ("ambiguous_denominator", "intersect")
    return {name: config["wording"][name] for name in names}


def side_files():
    """What is made beside the tables: other names in constructed sets, facts out of dumps, ranks by
    trained prompts, multiple choice, fillings."""
    origins = {b.split("_")[0] for b in probed("bear") if "released" not in b}
    origins |= {b.split("_")[0] for b in constructed()}
    names = [f"results/benchmarks/{o}_big/aliases.parquet" for o in sorted(origins)]
    names += [f"results/knowledge/{dump}/facts.parquet" for dump in sorted(DUMPS)]
    names += ["results/tables/ontoprobe_table5.parquet"] if by_method("choice") else []
    return names + soft_files() + fill_files()


def onto_rows():
    """Rows of the sheet whose memorising answers OntoProbe's tables show."""
    methods = ("cloze", "sentence", "soft")
    return [
        row
        for row in probes(paper="ontoprobe")
        if row["method"].split("-")[0] in methods
    ]


def onto_answers():
    """The file of answers of every one of these rows, in their order."""
    found = []
    for row in onto_rows():
        if row["method"].split("-")[0] == "sentence":
            found += expand(rules.score.output.scores, **row)
        else:
            kind = "soft" if row["method"] == "soft" else "templates"
            found.append(
                f"results/ranks/{row['benchmark']}/{kind}/{row['model']}.parquet"
            )
    return found


def onto_sets():
    """The OntoProbe sets that are asked, and the whole set of every lite one."""
    asked = [row["benchmark"] for row in onto_rows()]
    return list(dict.fromkeys([*(b.removesuffix("_lite") for b in asked), *asked]))


def onto_tables():
    """OntoProbe's tables that apply to this sheet."""
    names = ["sizes", "configurations", "memorising", "groups", "baseline", "modes"]
    if any(row["method"] in ("cloze", "soft") for row in onto_rows()):
        names.append("averages")
    if "onto_world" in onto_sets():
        names.append("calibration")
    if by_method("reason", "ontoprobe"):
        names.append("reasoning")
    if any(row["method"] == "soft" for row in onto_rows()):
        names.append("seeds")
    if config["ontoprobe"]["beside"]:
        names.append("runs")
    return [f"ontoprobe_{name}" for name in names]


def chapters():
    """Chapters of the report beside BEAR's, in the order in which they are printed."""
    return [
        f"results/report/chapters/{name}.json"
        for name, wanted in {
            "sources": bool(comparisons()),
            "ontoprobe": bool(onto_rows()),
            "attributes": bool(probes(paper="kg")),
            "autoprompt": bool(probes(paper="autoprompt")),
        }.items()
        if wanted
    ]


def attribute_facts():
    """The facts of the graph that the attributes are built on."""
    chosen = config["attributes"]["graph"]
    found = [f"results/knowledge/{chosen}/facts.parquet"]
    return found + (
        ["results/knowledge/trex/dates.parquet"] if chosen == "trex" else []
    )


def template_tables():
    """The tables whose relations have a template: the general one, and the attributes' own."""
    known = ("templates.tsv", "kg.tsv")
    return [
        p
        for p in (f"resources/templates/{name}" for name in known)
        if Path(p).is_file()
    ]


def prompt_section(wildcards):
    """The settings of a search on this benchmark and model."""
    own = config["autoprompt"]
    return prompt_settings.section(own, wildcards.benchmark, wildcards.model)


def prompt_sweep(wildcards):
    """The settings of a sweep on this benchmark and model."""
    own = (config["autoprompt"], wildcards.sweep, wildcards.benchmark, wildcards.model)
    return prompt_settings.sweep(*own)


def outcomes_of(row):
    """The file with the outcomes of a row of the sheet."""
    family = prompt_settings.family(row["prompt"])
    return f"results/outcomes/{row['benchmark']}/{family}/{row['model']}.parquet"


def predicted():
    """The file with the outcomes of every row that predicts; one file may hold several rows."""
    return [outcomes_of(row) for row in by_method("predict", "autoprompt")]


def written_prompts(wildcards):
    """The prompts without training that the sheet asks of a model on a benchmark."""
    return [
        row["prompt"]
        for row in by_method("predict", "autoprompt")
        if (row["benchmark"], row["model"]) == (wildcards.benchmark, wildcards.model)
        and row["prompt"] in prompt_settings.WRITTEN
    ]


def found_prompts(wildcards):
    """The searched prompts that some written one is made of."""
    if not set(written_prompts(wildcards)) & set(prompt_settings.OF_SEARCHED):
        return []
    return f"results/prompts/searched/{wildcards.benchmark}/{wildcards.model}"


def other_prompts(wildcards):
    """The searched prompts of the model that prompts are transferred from."""
    if "transferred" not in written_prompts(wildcards):
        return []
    chosen = config["autoprompt"]["transfer"]
    if wildcards.model not in chosen:
        raise WorkflowError(
            f"{config['sheets']['experiments']}: prompt transferred for {wildcards.model!r}: name "
            "in autoprompt.transfer the model that its prompts come from"
        )
    return f"results/prompts/searched/{wildcards.benchmark}/{chosen[wildcards.model]}"


def prompt_wordings(wildcards):
    """Folders of published wordings that the prompts of a job need."""
    asked = set(written_prompts(wildcards))
    made = lama("lpaqa") if asked & set(prompt_settings.OF_WORDINGS) else []
    return made + (lama("autoprompt_published") if "published" in asked else [])


def searched_folders():
    """Folders of prompt files, for every searched row of the sheet."""
    return [
        f"results/prompts/{row['prompt']}/{row['benchmark']}/{row['model']}"
        for row in by_method("predict", "autoprompt")
        if row["prompt"] in prompt_settings.SEARCHED
    ]


def sweep_rows():
    """Rows of the sheet that sweep over settings."""
    return [*by_method("low_data", "autoprompt"), *by_method("grid", "autoprompt")]


def sweep_of(row):
    """The file of a sweep."""
    return f"results/sweeps/{row['method']}/{row['benchmark']}/{row['prompt']}/{row['model']}.parquet"


def pulls_facts():
    """Whether facts to search with come out of our own pulls."""
    return config["prompt_tasks"]["facts"]["search"] == "pulls"


def token_models():
    """The models whose tokenizers choose facts, as far as an answer depends on them."""
    chosen = config["prompt_tasks"]["facts"]["single_token_for"]
    if unknown := [name for name in chosen if name not in MODELS]:
        raise WorkflowError(
            f"config: prompt_tasks.facts.single_token_for: unknown model {', '.join(unknown)}; "
            f"legal: {', '.join(sorted(MODELS))}"
        )
    columns = ["model", "kind", "source", "revision", "dtype", "bos"]
    return [
        {key: sheets.expand(MODELS[name].get(key, "")) for key in columns}
        for name in chosen
    ]
