"""One configuration per paper: its plan, its models, and coverage of every printed model.

No job runs: Snakemake only plans each configuration.
"""

import fnmatch
import json
import re
import subprocess
import sys

import pytest

from kgprobe import experiments
from kgprobe.config import models_of, settings_of
from kgprobe.plan import costs, jobs
from kgprobe.plan.jobs import PlannedJob
from tests.workflow.project import ROOT, Project

PUBLISHED = ROOT / "resources/published"
PAPERS = ("bear", "ontoprobe", "attributes", "autoprompt")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[PlannedJob]]:
    """Return the jobs of every paper's configuration."""
    made = Project(tmp_path_factory.mktemp("papers"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made.folder)
        return {paper: jobs.to_do([f"config/papers/{paper}.yaml"]) for paper in PAPERS}


#: files of answers -> their method
KINDS = {
    "baselines/*": "baseline",
    "scores/*": "sentence", "fills/*": "fill", "choices/*": "choice", "sweeps/*": "sweep",
    "ranks/*/templates/*": "cloze", "ranks/*/soft/*": "soft", "ranks/*/reason/*": "reason",
    "prompts/soft/*": "soft_prompts", "prompts/*": "searched", "outcomes/*/searched*": "searched",
    "outcomes/*/prompts/*": "predict", "outcomes/*": "trained",
}  # fmt: skip


def methods(job: PlannedJob) -> set[str]:
    """Return the methods of a model's job, from its output files."""
    paths = ["/".join(path.split("/")[2:]) for path in job.outputs]
    return {next(KINDS[k] for k in KINDS if fnmatch.fnmatchcase(path, k)) for path in paths}


def asked(plan: list[PlannedJob]) -> dict[str, set[str]]:
    """Map each method to its models."""
    found: dict[str, set[str]] = {}
    for job in plan:
        if model := costs.model_of(job):
            for method in methods(job):
                found.setdefault(method, set()).add(model)
    return found


def printed(name: str) -> set[str]:
    """Return the models of a table of published numbers."""
    return {row["model"] for row in experiments.read_table(PUBLISHED / f"{name}.tsv")}


@pytest.mark.parametrize("paper", PAPERS)
def test_only_the_attributes_query_live_services(plans, paper):
    """Only the attributes need data that T-REx lacks: property labels and aliases."""
    pulls = [job for job in plans[paper] if job.rule.startswith("pull")]
    live = sorted(job.rule for job in pulls if not costs.asks_nobody(job))
    assert live == (["pull", "pull_attribute_aliases"] if paper == "attributes" else [])
    assert 0 < len([job for job in plans[paper] if job.rule.startswith("download_")]) <= 8


def test_every_printed_model_of_a_paper_is_probed(plans):
    board = experiments.read_table(PUBLISHED / "bear_leaderboard.tsv")
    rows = models_of(settings_of(["config/papers/bear.yaml"]))
    own = {rows[model]["source"].rpartition("/")[2] for model in asked(plans["bear"])["sentence"]}
    assert own == {row["model"] for row in board if row["listed"] == "paper"}
    assert len(own) == 22
    six = printed("ontoprobe_memorizing") - {"frequency-baseline"}
    onto = asked(plans["ontoprobe"])
    assert onto["cloze"] == onto["soft"] == onto["soft_prompts"] == onto["reason"] == six
    assert onto["choice"] == {"bert-base-uncased"}
    attributes = asked(plans["attributes"])
    served = {"gpt-4", "text-davinci-003"}
    assert attributes["fill"] == printed("attributes_scores") - served
    searched = asked(plans["autoprompt"])
    facts = printed("autoprompt_facts") | printed("autoprompt_relation_extraction") - {"lstm"}
    assert searched["searched"] == searched["sweep"] == facts
    assert searched["trained"] == facts


@pytest.mark.parametrize(
    ("paper", "files"),
    [
        ("bear", {"random_init/scores"}),
        ("ontoprobe", {"random_init/ranks", "no_subject/ranks"}),
        ("attributes", {"no_subject/fills"}),
        ("autoprompt", {"random_init/outcomes", "no_subject/outcomes"}),
    ],
)
def test_baselines_are_planned_for_knowledge_probes(plans, paper, files):
    """Soft prompts, premises, classes and API models have none; random weights fill no slots."""
    paths = [p.split("/") for job in plans[paper] for p in job.outputs if "/baselines/" in p]
    assert {"/".join(path[3:5]) for path in paths} == files
    assert not {"soft", "reason"} & {path[6] for path in paths}
    if paper == "autoprompt":
        assert {path[5] for path in paths} <= {"auto_lama", "auto_lama_trex", "auto_lama_roberta"}
    rows = models_of(settings_of([f"config/papers/{paper}.yaml"]))
    ends = r"(\.golds|\.top)?\.parquet$"
    models = {re.sub(ends, "", path[-1]) for path in paths}
    assert models
    assert "api" not in {rows[model]["kind"] for model in models}


@pytest.mark.parametrize(
    "name", ["config", "embedded", pytest.param("real", marks=pytest.mark.real), *PAPERS]
)
def test_every_rule_has_its_cost(plans, name, monkeypatch):
    """A rule missing in resources/costs.tsv would have no cost."""
    monkeypatch.chdir(ROOT)
    known = costs.read(ROOT / "resources/costs.tsv")
    plan = plans.get(name) or jobs.to_do([f"config/{name}.yaml"])
    stages, unpriced = costs.plan(plan, models_of(settings_of([])), known)
    assert not unpriced
    assert sum(own.jobs for own in stages.values()) == len(plan)
    assert sum(own.requests for own in stages.values()) > 0 or name in ("embedded", "real")


def test_the_command_prints_a_plan_and_reports_errors(plans, tmp_path):
    made = Project(tmp_path)
    command = [sys.executable, "-m", "kgprobe.cli", "plan"]
    options = {"cwd": made.folder, "env": made.environment(), "text": True, "capture_output": True}
    first = "config/papers/ontoprobe.yaml"
    done = subprocess.run([*command, first], **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"run paper-ontoprobe: {first}\n")
    (line,) = [text.split() for text in done.stdout.splitlines() if text.startswith("all ")]
    assert "17" in line[1:3]
    # what is made already is not counted again
    (load,) = [job for job in plans["ontoprobe"] if job.rule.startswith("download_")]
    for path in load.outputs:
        (made.folder / path).mkdir(parents=True)
    again = json.loads(subprocess.run([*command, first, "--json"], **options).stdout)
    own = again["stages"]["sources"]
    assert [own[name] for name in ("jobs", "download_mb", "requests")] == [0, 0, 0]
    made.edit(first, "comparisons: []", "comparisions: []")
    wrong = subprocess.run([*command, first], **options)
    assert wrong.returncode == 1
    assert "unknown key 'comparisions'" in wrong.stderr
