"""Reruns after edits of the embedded run's tables; empty files with set mtimes replace outputs."""

import os
import re
import time
from pathlib import Path

import pytest

from tests.workflow.project import ROOT, Project

pytestmark = pytest.mark.nightly(gate=["mini/test_run.py", "unit/test_code.py"])

CONFIG = ["config/embedded.yaml"]
TRAINING = ("prompts_",)


def plan(made: Project) -> dict[str, int]:
    """Map each rule to its number of jobs in a dry run."""
    result = made.run("-n", configs=CONFIG)
    assert result.returncode == 0, result.stdout[-3000:]
    table = result.stdout.rpartition("Job stats:")[2].partition("\n\n")[0]
    rows = re.findall(r"^(\w\S*) +(\d+)$", table, re.MULTILINE)
    return {rule: int(count) for rule, count in rows if rule not in ("job", "all", "total")}


def outputs(made: Project) -> list[str]:
    """Return every output of a run from scratch."""
    shown = made.run("-n", configs=CONFIG).stdout
    lines = re.findall(r"^    output: (.+)$", shown, re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


@pytest.fixture
def finished(tmp_path):
    """Return a copy whose run is finished according to file times."""
    made = Project(tmp_path)
    (tmp_path / "resources").unlink()
    old = time.time() - 1000
    for path in (ROOT / "resources").rglob("*"):
        target = tmp_path / "resources" / path.relative_to(ROOT / "resources")
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
            os.utime(target, (old, old))
    names = outputs(made)
    assert len(names) > 200
    for name in names:
        path = tmp_path / name
        if Path(name).suffix or name.endswith(".gz"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        else:
            path.mkdir(parents=True)
            (path / ".snakemake_timestamp").write_bytes(b"")
            os.utime(path / ".snakemake_timestamp", (old + 500, old + 500))
        os.utime(path, (old + 500, old + 500))
    assert plan(made) == {}
    return made


def test_an_attribute_template_reruns_few_jobs_and_no_search(finished):
    finished.edit("resources/templates/attributes.tsv",
                  "[X] was born to a mother named [Y].", "[X] had a mother named [Y].")  # fmt: skip
    jobs = plan(finished)
    assert "word_prompts" in jobs
    assert "tabulate_attributes" in jobs
    assert not [rule for rule in jobs if rule.startswith((*TRAINING, "build_attributes"))]
    assert sum(jobs.values()) <= 25


def test_a_setting_reruns_the_jobs_that_read_it(finished):
    """Covers the jobs that read the mail address, soft prompts and attribute metrics."""
    finished.run("--touch", "--forceall", configs=CONFIG)
    assert plan(finished) == {}
    name = "config/embedded.yaml"
    finished.edit(name, "comparisons: []", "comparisons: []\ncontact: me@example.org")
    assert plan(finished) == {}
    finished.edit(name, "epochs: 12", "epochs: 13")
    assert set(plan(finished)) == {"tabulate_ontoprobe", "report"}
    finished.edit(name, "synonyms: 0", "synonyms: 0\n  ambiguous_denominator: head")
    assert set(plan(finished)) == {"tabulate_ontoprobe", "tabulate_attributes", "report"}


def test_deleted_tables_are_made_again(finished):
    (finished.folder / "results/embedded/tables/bear.parquet").unlink()
    assert set(plan(finished)) == {"tabulate", "report"}
    (finished.folder / "results/embedded/judged/attributes.parquet").unlink()
    assert set(plan(finished)) == {"tabulate", "tabulate_attributes", "report"}
