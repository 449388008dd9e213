# Reads config and sheets, checks every name before anything runs, and answers the questions that
# several stages ask. No path of a result is built here: each stands in the rule that makes it.
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import kgprobe
from kgprobe import guard, sheets
from kgprobe.code import Code
from kgprobe.config import ConfigError
from kgprobe.contracts import WITHOUT
from kgprobe.config import read as read_config
from kgprobe.job import sole_run
from kgprobe.probes import prompt_settings
from kgprobe.settings import ATTRIBUTES, Wikidata
from kgprobe.templates import nouns

#: benchmark -> the rule's folder of origin; what `experiments.tsv` may name
BENCHMARKS = {
    "bear_big": "constructed from the Wikidata pull",
    "bear_lite": "constructed from the Wikidata pull",
    "world_big": "constructed from the embedded world",
    "world_lite": "constructed from the embedded world",
    "bear_released": "the released BEAR",
    "bear_big_released": "the released BEAR-big",
    "lama": "LAMA's T-REx facts with options",
    "onto_world": "OntoProbe's tasks from the ontology of the embedded world",
    "onto_world_lite": "a small part of onto_world, for options scored as sentences",
    "onto_built": "OntoProbe's tasks from the pulled ontology",
    "onto_built_lite": "a small part of onto_built, for options scored as sentences",
    "onto_released": "the released OntoProbe",
    "onto_released_lite": "a small part of the released OntoProbe",
}
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
    "auto_world_all": ("world", []),
}
PROMPT_TASKS |= {f"auto_sick_{n}way": PROMPT_TASKS["auto_sick"] for n in (2, 3)}
BENCHMARKS |= {
    name: f"a prompt task of {PROMPT_TASKS[name][0]}" for name in PROMPT_TASKS
}
#: words and wordings of LAMA that fact retrieval and relation extraction need beside their facts
LAMA_FILES = ["relations.jsonl", "optiprompt", "vocab/common_vocab_cased.txt"]


PROMPTS = ["templates", "soft", *sheets.FORMS, sheets.STEPS, *prompt_settings.PROMPTS]


#: Priorities: training a control model takes minutes of one core, and every probe of it waits for
#: it. First comes what the training and other long jobs wait for, then the training, the one with
#: the longest chain behind it ahead of the others, with the prompts that are searched with a
#: model, for which its probes wait; then the probes, then everything else. A probe with several
#: threads begins when so many cores are free: on two, when nothing with one is left, and then it
#: uses both to the end.
FIRST, LONGEST, SECOND, THIRD = 4, 3, 2, 1


def paper_of(benchmark):
    """The paper that a benchmark belongs to."""
    if benchmark in ATTRIBUTES:
        return "attributes"
    if benchmark in PROMPT_TASKS:
        return "autoprompt"
    return "ontoprobe" if benchmark.startswith("onto_") else "bear"


#: what is made of a graph that the config names
OWN = {
    "{}_big": "constructed from {}",
    "{}_lite": "a smaller set constructed from {}",
    "onto_{}": "OntoProbe's tasks from {}",
    "onto_{}_lite": "a small part of OntoProbe's tasks from {}",
    "auto_{}": "a prompt task of {}",
}


def schema(name):
    """A JSON schema of workflow/schemas."""
    return sheets.read_schema(workflow.source_path(f"../schemas/{name}.schema.json"))


def switches(*names):
    """The chosen values of OntoProbe's switches: all, or those named."""
    from kgprobe.benchmarks.ontoprobe.modes import resolve

    chosen = SETTINGS.ontoprobe
    found = asdict(resolve(chosen.mode, chosen.switches))
    return {name: found[name] for name in names or found}


def checked():
    """(models by name, experiments): the sheets, every name in them known, or one clear error."""
    where = replace(
        SETTINGS.sheets,
        models=sheets.located(SETTINGS.sheets.models),
        experiments=sheets.located(SETTINGS.sheets.experiments),
    )
    models = sheets.by_name(
        sheets.read_sheet(where.models, schema("models")), where.models
    )
    papers = {name: paper_of(name) for name in BENCHMARKS}
    rows = sheets.read_sheet(where.experiments, schema("experiments"))
    rows = sheets.products(rows, where.experiments, models, papers, PROMPTS)
    sheets.check_experiments(rows, where.experiments, models)
    if wrong := prompt_settings.problems(rows):
        raise sheets.SheetError(f"{where.experiments}, " + "\n  ".join(wrong))
    sheets.check_papers(rows, where.experiments, papers)
    try:
        switches()
    except ValueError as problem:
        raise sheets.SheetError(f"config: {problem}") from None
    return models, sheets.with_raw(rows)


# jobs read this file, too: only the process that was started by hand ends the whole run
GUARD = guard.Guard(workflow) if workflow.is_main_process else None

try:
    # the files below what is given on the command line come first
    GIVEN = list(workflow.overwrite_configfiles)
    SETTINGS = read_config(config, [*workflow.configfiles[len(GIVEN) :], *GIVEN])
    GRAPHS = SETTINGS.sources.graphs
    PROMPT_TASKS |= {f"auto_{name}": (name, []) for name in GRAPHS}
    GRAPH_OF = {form.format(name): name for name in GRAPHS for form in OWN}
    BENCHMARKS |= {f.format(g): OWN[f].format(g) for g in GRAPHS for f in OWN}
    if twice := sorted(set(GRAPHS) & set(SETTINGS.sources.dumps)):
        raise ConfigError(
            f"sources.graphs and sources.dumps both have {', '.join(twice)}"
        )
    if SETTINGS.attributes.graph not in ("world", "trex", *GRAPHS):
        raise ConfigError(
            f"attributes.graph is {SETTINGS.attributes.graph!r}; legal: world, trex, "
            f"sources.graphs ({', '.join(GRAPHS) or 'none'})"
        )
    MODELS, EXPERIMENTS = checked()
except (ConfigError, sheets.SheetError) as problem:
    raise WorkflowError(str(problem)) from None


#: control models of an invented world that are taught patterns in part
INFERRED = {
    f"control-inferred-{kind}-{width}-{count}-{seed}": {
        "kind": kind,
        "source": f"control:inferred-{kind}-{width}-{count}-{seed}",
        "revision": "",
        "dtype": "float32",
        "bos": "forced" if kind == "causal" else "-",
        "parameters": "1",
    }
    for kind in SETTINGS.control.inferences.kinds
    for width in SETTINGS.control.inferences.widths
    for count in SETTINGS.control.inferences.exposures
    for seed in range(SETTINGS.control.inferences.seeds)
}
MODELS = {
    **MODELS,
    **{n: {"model": n, **row} for n, row in INFERRED.items()},
}


# scripts that show the configuration, or what changes no answer, take it whole
config.update(asdict(SETTINGS))
RESULTS = f"results/{SETTINGS.run.name}"


# what the rules write as <results>, <logs> and <resources>
workflow.register_pathvars(
    results=RESULTS,
    logs=f"logs/{SETTINGS.run.name}",
    resources=sheets.located("resources"),
)


# jobs read this file, too: only the process that was started by hand tells what the sheet stands
# for, or takes the folder's lock
if workflow.is_main_process and {"-n", "--dry-run", "--dryrun"} & set(sys.argv):
    print(sheets.told(EXPERIMENTS, SETTINGS.sheets.experiments), file=sys.stderr)
elif workflow.is_main_process and not {"--unlock", "--lint"} & set(sys.argv):
    try:
        sole_run(f".snakemake/kgprobe-{SETTINGS.run.name}.lock")
    except RuntimeError as problem:
        raise WorkflowError(str(problem)) from None
    GUARD.own(RESULTS, f"{SETTINGS.data}/answers")


# the scheduler, which is made before, has taken SIGTERM
onstart:
    if GUARD:
        GUARD.listen()


wildcard_constraints:
    source="wikidata|dbpedia|world|world_dbpedia",
    graph="|".join(GRAPHS) or "none",
    benchmark="|".join(BENCHMARKS),
    prompt="|".join(PROMPTS),
    method="|".join(sorted({row["method"] for row in EXPERIMENTS})),
    model="|".join(sorted(MODELS)),
    kind="masked|causal|seq2seq",


CODE = Code(Path(kgprobe.__file__).parent, kept=Path(".snakemake/kgprobe-code"))


def code(script, *dynamic):
    """A parameter of the script's rule: one hash of all that the script can run, so that an edit
    reruns what it can change. `dynamic`, with wildcards, is what no import statement shows; `*`
    stands for all nine attributes.
    """
    path = Path(workflow.source_path(f"../scripts/{script}.py"))
    some = [
        name.replace("*", attribute)
        for name in dynamic
        for attribute in (ATTRIBUTES if "*" in name else [""])
    ]
    return lambda wildcards: CODE.hash(path, *(n.format(**wildcards) for n in some))


def codes(script, parts):
    """A parameter of jobs with parts, the hash of the code of each method by its name: of a floor,
    `floor-METHOD`, that of both."""
    found = {
        name: code(script, *(f"probes/jobs/methods/{own}" for own in name.split("-")))
        for name in sorted({part["method"] for part in parts})
    }
    return lambda wildcards: {name: own(wildcards) for name, own in found.items()}


def files(paths):
    """Paths of the config with their environment variables filled in; each must exist. LAMA's
    wordings are no part of an installed package: there ours of the same relations stand in.
    """
    found = [sheets.located(path) for path in paths]
    if sheets.ROOT.parent == sheets.PACKAGE:
        theirs = "resources/lama/"
        found = [p for p in found if Path(p).exists() or not p.startswith(theirs)]
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
    told = {key: sheets.expand(row.get(key, "")) for key in OF_MODEL}
    return told | {"made": f"{RESULTS}/models"}


#: where models work; a machine's business, and so in no configuration
DEVICE = os.environ.get("KGPROBE_DEVICE") or "auto"
if DEVICE not in ("auto", "cpu", "cuda"):
    raise WorkflowError(f"KGPROBE_DEVICE is {DEVICE!r}; legal: auto, cpu, cuda")
#: bytes of a weight by arithmetic
WEIGHT = {"float32": 4, "bfloat16": 2, "float16": 2}


def accelerators(wildcards):
    """Devices that a job of this model asks for: one where models work on one, none for a server's.

    One probe at a time uses it on a machine; a cluster places jobs by it.
    """
    is_here = Path(os.sep, "dev", "nvidia0").exists()
    wanted = DEVICE == "cuda" or (DEVICE == "auto" and is_here)
    row = MODELS[wildcards.model]
    return int(wanted and row["kind"] != "api")


def memory(copies=1, least=4000, exact=False):
    """MB that a job of a model asks for, by its size: `copies` of its weights (gradients and their
    moments are copies), a third for what is read beside them, and what a job without weights has.
    `exact`: some of the copies are float32."""

    def needed(wildcards):
        row = MODELS[wildcards.model]
        weight = WEIGHT["float32" if exact else row["dtype"]]
        weights = int(row.get("parameters") or 0) * weight * copies
        return max(least, 2500 + weights * 4 // 3)

    return needed


def check_data():
    """Files that the experiments need and that nothing here makes: missing ones are told at once."""
    for benchmark in {row["benchmark"] for row in EXPERIMENTS}:
        bear, wikidata = SETTINGS.sources.bear, SETTINGS.sources.wikidata
        if benchmark.startswith("onto_released"):
            onto = SETTINGS.sources.ontoprobe
            if onto.access == "local":
                files([f"{onto.folder}/memorizing", f"{onto.folder}/ontology"])
        elif benchmark.endswith("_released") and bear.access == "local":
            name = "BEAR-big" if benchmark.startswith("bear_big") else "BEAR"
            files([f"{bear.folder}/{name}"])
        if benchmark == "lama":
            data_parts("lama", ["trex_original", "relations.jsonl"])
        if benchmark in ("bear_big", "bear_lite") and wikidata.access == "local":
            files(wikidata.files)
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
    chosen = getattr(SETTINGS.sources, source)
    if chosen.access == "absent":
        raise WorkflowError(
            f"config: sources.{source}.access is absent, but {', '.join(names) or source} is "
            "needed; write local (and the folder) or live, or leave out the experiments that need it"
        )
    if chosen.access == "live":
        made = [name for archive in chosen.archives for name in archive.parts]
        names = [name for n in names for name in ([n] if n else made)]
    paths = [f"{chosen.folder}/{name}".rstrip("/") for name in names]
    return paths if chosen.access == "live" else files(paths)


def lama(*names):
    """Parts of the folder of LAMA's files, such as lpaqa."""
    return data_parts("lama", list(names))


check_data()


def check_servers():
    """The address of a server must be known before anything runs."""
    variable = SETTINGS.api.url_variable
    for row in EXPERIMENTS:
        if MODELS[row["model"]]["kind"] == "api" and not os.environ.get(variable):
            raise WorkflowError(
                f"{SETTINGS.sheets.experiments}, line {row['_line']}: set the environment "
                f"variable {variable} to the base URL of the server of {row['model']!r}, for "
                "example http://127.0.0.1:8000/v1"
            )


check_servers()
