# Reads the config and the tables of models and experiments, checks every name before anything runs,
# and defines what all rules use. Decisions derived from them are made in kgprobe.workflow.
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import kgprobe
from kgprobe import experiments, guard
from kgprobe.code import Code
from kgprobe.config import ConfigError
from kgprobe.config import read as read_config
from kgprobe.job import sole_download, sole_run
from kgprobe.plan import costs, needs
from kgprobe.plan.jobs import PlannedJob
from kgprobe.probes import prompt_settings
from kgprobe.settings.benchmarks import ATTRIBUTES
from kgprobe.workflow import (
    attributes,
    models,
    ontoprobe,
    parts,
    prompts,
    sources,
    tables,
)
from kgprobe.workflow.answers import (
    answers_of,
    baseline_rows,
    content_free_files,
    form_rows,
)
from kgprobe.workflow.benchmarks import PROMPT_TASKS, files_of
from kgprobe.workflow.run import PROMPTS, check, read_run, switches
from kgprobe.workflow.sources import data_parts, endpoint, files, without

#: Priorities: first the inputs of long jobs, then prompt search, which a model's probes wait for, and
#: masked models, which need one pass per token; then the other probes, then everything else. A
#: probe with several threads starts when that many cores are free: on two cores, after all
#: single-threaded jobs.
FIRST, SECOND, THIRD = 3, 2, 1


# jobs read this file, too: only the process started by the user ends the whole run
GUARD = guard.Guard(workflow) if workflow.is_main_process else None

try:
    # configuration files come first, then values from the command line
    GIVEN = list(workflow.overwrite_configfiles)
    CONFIGS = [*workflow.configfiles[len(GIVEN) :], *GIVEN]
    SETTINGS = read_config(config, CONFIGS)
    RUN = read_run(SETTINGS, CONFIGS)
    ATTRIBUTE_GRAPH = attributes.graph(SETTINGS)
    check(RUN)
except (ConfigError, experiments.TableError) as problem:
    raise WorkflowError(str(problem)) from None

GRAPHS, DUMPS = SETTINGS.sources.graphs, sources.statement_dumps(SETTINGS)
#: constructed set -> the pull it is built from
ORIGIN = {"bear": "wikidata", "world": "world"} | {name: name for name in GRAPHS}
#: OntoProbe set -> its ontology, and the pull whose statements count an instance's popularity
ONTOLOGIES = {"world": ("world_ontology", "world"), "built": ("ontology", "wikidata")}
ONTOLOGIES |= {name: (name, name) for name in GRAPHS}

# scripts that display the configuration, or that do not affect answers, get all of it
config.update(asdict(SETTINGS))
RESULTS = f"results/{SETTINGS.run.name}"


# the folders that rules write as <results>, <logs> and <resources>
workflow.register_pathvars(
    results=RESULTS,
    logs=f"logs/{SETTINGS.run.name}",
    resources=experiments.located("resources"),
)


# jobs read this file, too: only the process started by the user prints what the table of
# experiments expands to, or takes the folder's lock
if workflow.is_main_process and workflow.output_settings.dryrun:
    print(
        experiments.describe_rows(RUN.rows, SETTINGS.tables.experiments),
        file=sys.stderr,
    )
elif workflow.is_main_process and not {"--unlock", "--lint"} & set(sys.argv):
    for name, most in models.limits(workflow.resource_settings.nodes is None).items():
        if name not in workflow.global_resources:
            workflow.register_resource(name, most)
    try:
        sole_run(f".snakemake/kgprobe-{SETTINGS.run.name}.lock")
    except RuntimeError as problem:
        raise WorkflowError(str(problem)) from None
    GUARD.own(RESULTS, f"{SETTINGS.data}/answers")


# the scheduler, which is created earlier, has replaced the handler of SIGTERM
onstart:
    if GUARD:
        GUARD.listen()
        planned = to_do()
        try:
            if message := needs.check(*lacking(planned)):
                print(message, file=sys.stderr)
            for lock, paths in sources.shared(SETTINGS).items():
                outputs, inputs = (
                    {path for job in planned for path in getattr(job, files)}
                    & {*paths}
                    for files in ("outputs", "inputs")
                )
                if outputs | inputs:
                    sole_download(lock, sorted(outputs), sorted(inputs))
        except RuntimeError as problem:
            raise WorkflowError(str(problem)) from None


def to_do():
    """The jobs that will run."""
    return [
        PlannedJob(
            job.rule.name,
            dict(job.wildcards_dict),
            tuple(map(str, job.input)),
            tuple(map(str, job.output)),
            str(job.log[0]) if job.log else "",
            0,
            0,
        )
        for job in workflow.dag.needrun_jobs()
    ]


def lacking(planned):
    """External requirements of the jobs that are missing."""
    known = costs.read(Path(experiments.located("resources/costs.tsv")))
    memory = models.estimate_mb(RUN, parts.stages(RUN))
    # the nodes of a cluster have their own memory
    here = models.memory_mb() if workflow.resource_settings.nodes is None else 0
    return needs.find_missing(SETTINGS, planned, RUN.models, known, memory, here)


wildcard_constraints:
    source="wikidata|dbpedia|world|world_dbpedia",
    graph="|".join(GRAPHS) or "none",
    benchmark="|".join(RUN.benchmarks),
    prompt="|".join(PROMPTS),
    method="|".join(sorted({row["method"] for row in RUN.rows})),
    model="|".join(sorted(RUN.models)),
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


def codes(script, folder, parts):
    """A parameter of jobs with parts, the hash of the code of each by its name: of a baseline,
    `baseline-METHOD`, that of both."""
    hashes = {
        name: code(script, *(f"{folder}/{module}" for module in name.split("-")))
        for name in sorted(set(parts))
    }
    return lambda wildcards: {name: hash(wildcards) for name, hash in hashes.items()}


def lama(*names):
    """Parts of LAMA's files, such as relations.jsonl."""
    return data_parts(SETTINGS, "lama", names)


def released(source, part):
    """A folder of a released data set, then its files; downloaded first if access is live."""
    return data_parts(SETTINGS, source, [part])


def of_origin(table, ours):
    """The templates or relations of a constructed set: kgprobe's, or those of its user-supplied graph."""
    return lambda wildcards: (
        f"<results>/benchmarks/own/{wildcards.origin}/{table}.tsv"
        if wildcards.origin in GRAPHS
        else f"<resources>/templates/{ours}.tsv"
    )


def rdf(wildcards):
    """RDF files that a source's queries run on; none if it is pulled live."""
    return sources.rdf_files(SETTINGS, wildcards.source)
