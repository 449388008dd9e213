"""Dry runs in one warm process: the full rebuild, rows, runs, dumps, user-supplied graphs."""

import fcntl
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgprobe.cli import app
from tests.workflow.project import CONFIGS, ROOT, Project

HEADER = "paper\tbenchmark\tprompt\tmethod\tmodel\n"
EMBEDDED = "config/embedded.yaml"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    row = "bear\tworld_lite\ttemplates\tsentence\tcontrol-masked\n"
    (tmp_path / "config/experiments.small.tsv").write_text(HEADER + row)
    return made


def of_rule(plan: str, rule: str) -> str:
    """Return the part of a plan on a rule; empty if it is not needed."""
    return plan.partition(f"\nrule {rule}:")[2].partition("\nrule ")[0]


def test_the_full_rebuild_resolves_without_a_network(planner, project):
    refuses = "http://127.0.0.1:9"
    plan = planner.plan(project.folder, http_proxy=refuses, https_proxy=refuses)
    assert plan.returncode == 0, plan.stdout[-3000:]
    rules = "pull_facts construct_bear load_bear probes_gpt2 probes_control-masked report"
    for rule in rules.split():
        assert f"\n{rule} " in plan.stdout, f"{rule} is missing from the full rebuild"


def test_the_embedded_run_has_few_jobs_and_none_per_attribute(planner, project):
    plan = planner.plan(project.folder, "--configfile", EMBEDDED).stdout
    assert int(re.findall(r"^total +(\d+)$", plan, re.MULTILINE)[-1]) < 30
    assert "benchmarks/paths/items.parquet" in of_rule(plan, "build_attributes")


def test_aliases_are_a_switch(planner, project):
    plan = planner.plan(project.folder, "--configfile", EMBEDDED).stdout
    assert "benchmarks/bias/candidates.parquet" in of_rule(plan, "pull_attribute_aliases")
    assert "benchmarks/graph/aliases.parquet" in of_rule(plan, "tabulate_attributes")
    project.edit("config/config.yaml", "match: aliases", "match: label")
    plan = planner.plan(project.folder, "--configfile", EMBEDDED).stdout
    assert of_rule(plan, "tabulate_attributes")
    assert not of_rule(plan, "pull_attribute_aliases")


@pytest.mark.parametrize(
    "row",
    [
        "ontoprobe onto_world soft soft control-causal",
        "autoprompt auto_world transferred predict control-masked",
        "attributes symmetry templates fill served",
    ],
)
def test_a_row_alone_is_planned_up_to_the_report(planner, project, row):
    """Covers kinds in no table of the project; the nightly test covers every kind of row."""
    experiments = project.folder / "config/experiments.embedded.tsv"
    experiments.write_text(HEADER + "\t".join(row.split()) + "\n")
    models = project.folder / "config/models.tsv"
    models.write_text(models.read_text() + "served\tapi\tapi:some-model\t\tfloat32\t-\n")
    project.edit("config/config.yaml", "transfer: {}", "transfer: {control-masked: control-causal}")
    url = "http://127.0.0.1:9/v1"
    plan = planner.plan(project.folder, "--configfile", EMBEDDED, KGPROBE_API_URL=url)
    assert plan.returncode == 0, plan.stdout[-3000:]
    assert "\nrule report:" in plan.stdout
    assert "\nrule tabulate:" not in plan.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\n", "mine.yaml: run.name is missing; valid: letters, digits, - and _"),
        ("run: {name: a/b}\n", "mine.yaml: run.name: 'a/b'; valid: letters, digits, - and _"),
    ],
)
def test_a_run_without_a_good_name_writes_nothing(planner, project, text, message):
    (project.folder / "mine.yaml").write_text(text)
    result = planner.plan(project.folder, "--configfile", "mine.yaml")
    assert result.returncode
    assert message in result.stdout
    assert not (project.folder / "results").exists()


WAYS = {
    "json": """
sources:
  wikidata: {access: dump, dump: wikidata_json, snapshot: read}
  dbpedia: {access: dump, ontology: dbpedia_dump, types: dbpedia_dump, snapshot: read}
""",
    "truthy": """
sources:
  wikidata: {access: dump, dump: wikidata_truthy, snapshot: read}
""",
}
ON_DUMPS = """bear	bear_lite	templates	sentence	control-masked
ontoprobe	onto_built_lite	templates	cloze	control-masked
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_run_on_dumps_is_planned_without_endpoints(planner, project, way):
    (project.folder / "config/experiments.small.tsv").write_text(HEADER + ON_DUMPS)
    (project.folder / "dumps.yaml").write_text(
        f"run: {{name: {way}}}\n{WAYS[way]}\nbear: {{min_sitelinks: 0}}\n"
    )
    result = planner.plan(
        project.folder, "--configfile", *CONFIGS, "config/dumps.yaml", "dumps.yaml"
    )
    assert result.returncode == 0, result.stdout[-3000:]
    for rule in ("read_dump", "construct_bear", "ontology", "probes_control-masked", "report"):
        assert f"\n{rule} " in result.stdout, f"{rule} is missing from the plan"
    assert f"results/{way}/sources/wikidata/described.nt" in result.stdout
    assert ("\nread_types " in result.stdout) == (way == "json")


def test_the_tutorial_on_an_own_graph_is_planned_up_to_its_table(planner, project, monkeypatch):
    monkeypatch.chdir(project.folder)
    page = (ROOT / "docs/tutorials/own_graph.md").read_text()
    ((name, text),) = re.findall(r"^`(\S+csv)`\n\n```csv\n(.*?)```", page, flags=re.M | re.S)
    Path(name).write_text(text)
    Path("m").symlink_to(ROOT / "resources/control/masked")
    done = CliRunner().invoke(app, ["init", "mine", "--facts", name, "--model", "./m"])
    assert done.exit_code == 0, done.output
    result = planner.plan(project.folder, "--configfile", "mine/config.yaml")
    assert result.returncode == 0, result.stdout[-3000:]
    assert "results/mine/tables/bear.parquet" in result.stdout


@pytest.mark.parametrize("dry", ["-n", "-np", "-pn", "--dry-run"])
def test_a_dry_run_takes_no_lock(planner, project, dry):
    with (project.folder / ".snakemake/kgprobe-embedded.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        plan = planner.plan(project.folder, "--configfile", EMBEDDED, "--", TARGET, dry=dry)
    assert plan.returncode == 0, plan.stdout[-2000:]
    assert "config/experiments.embedded.tsv: " in plan.stdout
    assert "another run" not in plan.stdout


TARGET = "results/embedded/sources/world/constraints.parquet"


def test_pulls_and_downloads_have_run_times_and_stay_local(planner, project):
    plan = planner.plan(project.folder).stdout
    jobs = dict(re.findall(r"^rule (\w+):\n((?:    .*\n)+)", plan, re.M))
    known = {name: text for name, text in jobs.items() if name.startswith(("pull", "download"))}
    assert {"pull", "pull_facts", "pull_types", "download_bear_0"} <= set(known)
    for name, text in known.items():
        assert f"runtime={2880 if name.startswith('download') else 1440}" in text, name
    # a dry run does not show which rules are local
    rules = re.split(r"\n(?=\s*rule\b)", (ROOT / "workflow/rules/sources.smk").read_text())
    outside = [rule for rule in rules if re.search(r"\b(sparql|downloads)=1", rule)]
    assert len(outside) == 8
    assert all("localrule: True" in rule for rule in outside)


def test_an_export_depends_on_the_cardinality_of_relations(planner, project):
    """`relation_info.json` is written from it; other papers' benchmarks have no such table."""
    folder = "results/embedded/exports/lm-pub-quiz"
    targets = [f"{folder}/{name}" for name in ("world_lite", "onto_world_lite")]
    plan = planner.plan(project.folder, "--configfile", EMBEDDED, "--", *targets)
    assert plan.returncode == 0, plan.stdout[-3000:]
    parts = plan.stdout.split("\nrule export:")[1:]
    inputs = [part.partition("input: ")[2].partition("\n")[0] for part in parts]
    assert len(inputs) == 2
    assert ["benchmarks/world_lite/relations.parquet" in one for one in sorted(inputs)] == [
        "world_lite" in one and "onto_" not in one for one in sorted(inputs)
    ]


def test_tokenizers_that_select_facts_are_inputs(planner, project):
    (project.folder / "mine").mkdir()
    for name in ("config.json", "tokenizer.json"):
        (project.folder / "mine" / name).write_text("{}", encoding="utf-8")
    models = project.folder / "config/models.tsv"
    models.write_text(models.read_text() + "mine\tmasked\tfolder:mine\t\tfloat32\t-\n")
    project.edit("config/config.yaml", "single_token_for: []", "single_token_for: [mine]")
    target = "results/paper/benchmarks/auto_lama/examples.parquet"
    plan = planner.plan(project.folder, "--config", "run={name: paper}", "--", target)
    assert plan.returncode == 0, plan.stdout[-3000:]
    assert "mine/tokenizer.json" in of_rule(plan.stdout, "build_prompt_facts")
