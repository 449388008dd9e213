"""What control models are taught depends on the config alone, whatever the sheet asks."""

import json
import subprocess
import sys

import pytest

from kgprobe.settings import ATTRIBUTES
from tests.workflow.project import Project

pytestmark = pytest.mark.nightly(
    gate=[
        "workflow/test_plans.py",
        "unit/test_taught.py",
    ]
)

#: Reads the Snakefile as a dry run does and prints input and params of some rules.
RULES = """
import json, sys
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings
files, names = (part.split(",") for part in sys.argv[1:3])
with SnakemakeApi(OutputSettings(dryrun=True)) as api:
    made = api.workflow(
        resource_settings=ResourceSettings(cores=1),
        config_settings=ConfigSettings(configfiles=[Path(f) for f in files]),
        snakefile=Path("Snakefile"),
    )
    workflow = made._workflow
    def told(values):
        pairs = [(key, value) for key, value in values._allitems()]
        each = [(k, one) for k, v in pairs for one in (v if isinstance(v, list | tuple) else [v])]
        return sorted(f"{k}: {'a function' if callable(v) else v}" for k, v in each)
    rules = [workflow.get_rule(name) for name in names]
    found = {r.name: {"input": told(r.input), "params": told(r.params)} for r in rules}
print("RULES " + json.dumps(found))
"""
TEACHING = ("split_taught", "split_ontology", "train_control")
#: rules that make what is read to choose the lessons
BEHIND = (
    "encode_graph", "construct_bear", "construct_ontoprobe", "facts", "pull_facts",
)  # fmt: skip
HEADER = "paper\tbenchmark\tprompt\tmethod\tmodel\n"


def rules(made: Project, rows: str = "") -> dict[str, dict]:
    """Input and params of the rules of a copy of the project; `rows` replace those of its sheet."""
    if rows:
        (made.folder / "config/experiments.embedded.tsv").write_text(HEADER + rows)
    found = subprocess.run(
        [sys.executable, "-c", RULES, "config/embedded.yaml", ",".join((*TEACHING, *BEHIND)), "-n"],
        cwd=made.folder,
        env=made.environment(),
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    line = next(line for line in found.stdout.splitlines() if line.startswith("RULES "))
    return json.loads(line.removeprefix("RULES "))


@pytest.mark.parametrize(
    "row",
    [
        "attributes\tsymmetry\ttemplates\tfill\tcontrol-masked\n",
        "bear\tworld_lite\ttemplates\tsentence\tcontrol-causal\n",
        "ontoprobe\tonto_world\ttemplates\tcloze\tcontrol-masked\n",
        "autoprompt\tauto_world\tmanual\tpredict\tcontrol-masked\n",
    ],
    ids=lambda row: row.split("\t")[0],
)
def test_a_sheet_of_one_row_teaches_what_the_whole_sheet_teaches(tmp_path, whole, row):
    assert rules(Project(tmp_path), row) == whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """The rules under the embedded run's own sheet."""
    return rules(Project(tmp_path_factory.mktemp("whole")))


def test_the_world_s_attributes_and_its_ontology_are_taught(whole):
    examples = [f for f in whole["split_taught"]["input"] if f.endswith("/examples.parquet")]
    assert len(examples) == len(ATTRIBUTES)
    assert (
        "questions: results/embedded/benchmarks/onto_world/items.parquet"
        in (whole["split_ontology"]["input"])
    )
    assert "recall: 0.99" in whole["train_control"]["params"]


def test_on_another_graph_no_attribute_is_taught(tmp_path, whole):
    made = Project(tmp_path)
    made.edit("config/embedded.yaml", "graph: world", "graph: trex")
    found = rules(made)
    gone = set(whole["split_taught"]["input"]) - set(found["split_taught"]["input"])
    assert len(gone) == len(ATTRIBUTES)
    assert all("examples.parquet" in name for name in gone)
    assert found["train_control"] == whole["train_control"]


def test_the_config_says_which_attributes_are_taught(tmp_path):
    made = Project(tmp_path)
    made.edit("config/config.yaml", "attributes: [symmetry, asymmetry,", "attributes: [")
    examples = [f for f in rules(made)["split_taught"]["input"] if "examples.parquet" in f]
    assert len(examples) == len(ATTRIBUTES) - 2
