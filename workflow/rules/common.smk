# Reads config and sheets, checks every name before anything runs, and answers the questions that
# several stages ask. No path of a result is built here: each stands in the rule that makes it.
import os
import sys
from pathlib import Path

from kgprobe import sheets
from kgprobe.job import sole_run

#: benchmark -> the rule's folder of origin; what `experiments.tsv` may name
BENCHMARKS = {
    "bear_big": "constructed from the Wikidata pull",
    "bear_lite": "constructed from the Wikidata pull",
    "world_big": "constructed from the embedded world",
    "world_lite": "constructed from the embedded world",
    "bear_released": "the released BEAR",
    "bear_big_released": "the released BEAR-big",
}
PROMPTS = ["templates"]


def schema(name):
    """A JSON schema of workflow/schemas."""
    return sheets.read_schema(
        Path(workflow.basedir) / "workflow" / "schemas" / f"{name}.schema.json"
    )


def checked():
    """(models by name, experiments): the sheets, every name in them known, or one clear error."""
    sheets.check_config(config, schema("config"))
    where = config["sheets"]
    models = sheets.by_name(
        sheets.read_sheet(where["models"], schema("models")), where["models"]
    )
    rows = sheets.read_sheet(where["experiments"], schema("experiments"))
    sheets.check_experiments(rows, where["experiments"], models, BENCHMARKS, PROMPTS)
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
    source="wikidata|dbpedia|world",
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


def accelerators():
    """1 where this machine has an NVIDIA device, so that one probe at a time uses it."""
    return int(Path(os.sep, "dev", "nvidia0").exists())


def check_data():
    """Files that the experiments need and that nothing here makes: missing ones are told at once."""
    for benchmark in {row["benchmark"] for row in EXPERIMENTS}:
        bear, wikidata = config["sources"]["bear"], config["sources"]["wikidata"]
        if benchmark.endswith("_released") and bear["access"] == "local":
            name = "BEAR-big" if benchmark.startswith("bear_big") else "BEAR"
            files([f"{bear['folder']}/{name}"])
        if benchmark in ("bear_big", "bear_lite") and wikidata["access"] == "local":
            files(wikidata["files"])


check_data()


EMBEDDED = {
    "access": "embedded",
    "endpoint": "local",
    "snapshot": "embedded",
    "files": [],
    "statements": "facts",
}


def graph(source):
    """Which of the two graphs a source speaks: the world's facts have Wikidata's shape."""
    return "dbpedia" if source == "dbpedia" else "wikidata"


def settings(source):
    """The access settings of a source; the world is always embedded."""
    if source == "world":
        return EMBEDDED
    return config["sources"][source]


def rdf(wildcards):
    """RDF files that a local endpoint serves for a source; none when it is pulled live."""
    chosen = settings(wildcards.source)
    if chosen["access"] == "embedded":
        return [f"results/sources/world/{graph(wildcards.source)}.nt"]
    return files(chosen["files"]) if chosen["access"] == "local" else []


def trex_dump(wildcards=None):
    """The folder or zip of T-REx files."""
    chosen = config["sources"]["trex"]
    if chosen["access"] == "embedded":
        return "results/sources/world/trex"
    return files([chosen["path"]])[0]


def trex_members():
    """Names of the dump files, without their ending: one shard each."""
    if config["sources"]["trex"]["access"] == "embedded":
        return ["re-nlg_0-10000"]
    from kgprobe.sources.trex import members

    return [Path(name).stem for name in members(Path(trex_dump()))]


def released_bear(wildcards):
    """The folder of the released set; it is downloaded first where access is live."""
    name = "BEAR-big" if wildcards.size else "BEAR"
    chosen = config["sources"]["bear"]
    if chosen["access"] == "live":
        return f"{chosen['folder']}/{name}"
    return files([f"{chosen['folder']}/{name}"])[0]


def weights(wildcards):
    """Files of the model that the workflow itself makes or finds on disk."""
    kind, _, place = MODELS[wildcards.model]["source"].partition(":")
    if kind == "control":
        return f"results/models/control-{place}"
    return files([place])[0] if kind == "folder" else []


def has_controls():
    """Whether a control model answers questions of the embedded world: then there is calibration."""
    return any(
        row["benchmark"].startswith("world_")
        and MODELS[row["model"]]["source"].startswith("control:")
        for row in EXPERIMENTS
    )


def several():
    """Whether some benchmark is answered by more than one probe, so that differences exist."""
    return any(len(probes(benchmark)) > 1 for benchmark in probed("bear"))


def score_files():
    """The score file of every row of the experiment sheet, in its order."""
    return [expand(rules.score.output.scores, **row)[0] for row in EXPERIMENTS]


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
