"""Named runs do not affect each other, and the workflow runs from other folders."""

import fcntl
import subprocess
import sys

import pytest

from kgprobe.config import settings_of
from kgprobe.workflow import sources
from tests.workflow.project import ROOT, Project

pytestmark = pytest.mark.nightly(
    gate=[
        "workflow/test_plans.py::test_a_run_without_a_good_name_writes_nothing",
        "mini/test_run.py::test_a_run_at_work_keeps_a_second_one_out",
    ]
)

OTHER = "run: {name: other}\nseed: 7\n"
MODULE = """
configfile: "mine.yaml"

module kgprobe:
    snakefile: "{entry}"
    config: config

use rule * from kgprobe
"""


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_two_runs_in_one_checkout_are_independent(project):
    target = "sources/world/constraints.parquet"
    embedded = ["config/embedded.yaml"]
    first = project.run("--", f"results/embedded/{target}", configs=embedded)
    assert first.returncode == 0, first.stdout
    before = project.hashes("results/embedded", "logs/embedded")
    assert len(before) > 2
    (project.folder / "other.yaml").write_text(OTHER)
    # another run in this folder is no obstacle, the same run would be
    lock = project.folder / ".snakemake/kgprobe-embedded.lock"
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = project.run("--", f"results/embedded/{target}", configs=embedded)
        assert "another run" in refused.stdout
        made = project.run("--", f"results/other/{target}", configs=[*embedded, "other.yaml"])
    assert made.returncode == 0, made.stdout
    assert project.hashes("results/embedded", "logs/embedded") == before
    assert (project.folder / "results/other" / target).is_file()
    assert (project.folder / "logs/other/sources").is_dir()


def test_shared_files_are_downloaded_by_one_run(project, monkeypatch):
    full = ["config/config.yaml"]
    monkeypatch.setenv("KGPROBE_CONTACT", "test@example.org")
    # names are a proxy's matter
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    shared = sources.shared(settings_of([]))
    name, (first, *_) = next((k, paths) for k, paths in shared.items() if "bear" in k)
    (project.folder / name).parent.mkdir(parents=True)
    with (project.folder / name).open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = project.run("--", "download_bear_0", configs=full)
        assert f"is downloading {first}; wait for it" in refused.stdout
        # jobs that do not need it run
        target = "results/full/sources/world/constraints.parquet"
        assert project.run("--", target, configs=full).returncode == 0


def test_missing_requirements_are_reported_before_the_first_job(project, monkeypatch):
    monkeypatch.delenv("KGPROBE_CONTACT", raising=False)
    result = project.run(configs=["config/config.yaml"])
    assert result.returncode
    message = result.stdout.partition("before the first job: this run lacks what its jobs need")[2]
    assert "- a contact, required by api.figshare.com, dbpedia.org" in message
    assert "KGPROBE_CONTACT" in message
    assert not (project.folder / "logs").exists()
    assert not (project.folder / "results").exists()


@pytest.mark.parametrize("entry", ["Snakefile", "workflow/Snakefile"])
def test_the_workflow_runs_in_another_folder(tmp_path, entry):
    """Config, tables and resources come from the project if the folder has none."""
    target = "results/embedded/sources/world/constraints.parquet"
    where = ["-s", str(ROOT / entry), "--directory", str(tmp_path)]
    where += ["--configfile", str(ROOT / "config/embedded.yaml")]
    result = snakemake(*where, "--", target)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / target).is_file()
    everything = snakemake(*where, "-n")
    assert everything.returncode == 0, everything.stdout + everything.stderr
    assert "tabulate_attributes" in everything.stdout


def test_the_workflow_is_usable_as_a_module(tmp_path):
    (tmp_path / "Snakefile").write_text(MODULE.format(entry=ROOT / "workflow/Snakefile"))
    embedded = (ROOT / "config/embedded.yaml").read_text().replace("name: embedded", "name: mine")
    (tmp_path / "mine.yaml").write_text(embedded)
    target = "results/mine/sources/world/constraints.parquet"
    where = ["-s", str(tmp_path / "Snakefile"), "--directory", str(tmp_path)]
    result = snakemake(*where, "--", target)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / target).is_file()


def snakemake(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nocolor", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=Project.environment(), text=True, capture_output=True
    )
