"""The workflow as a user runs it: complete, with exports, killed and resumed, failing.

This is the reduced embedded run: the same rules, control models trained for a few steps.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.workflow.project import ROOT, Project

pytestmark = pytest.mark.nightly(gate="mini/test_run.py")

EXPERIMENTS = """paper	benchmark	prompt	method	model
bear	world_lite	templates	sentence	control-masked
bear	world_lite	templates	sentence	control-causal
bear	world_lite	templates	sentence	control-seq2seq
"""
SAME = ("results/embedded/benchmarks", "results/embedded/tables")


def project(folder: Path) -> Project:
    made = Project(folder)
    (folder / "config/experiments.small.tsv").write_text(EXPERIMENTS)
    return made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a complete run on two cores."""
    made = project(tmp_path_factory.mktemp("two"))
    result = made.run(cores=2)
    assert result.returncode == 0, result.stdout[-4000:]
    return made


def test_questions_are_exported_on_request(finished):
    folder = "results/embedded/exports"
    result = finished.run("--", f"{folder}/lm-eval/world_lite")
    assert result.returncode == 0, result.stdout[-4000:]
    made = finished.folder / folder / "lm-eval/world_lite"
    assert (made / "kgprobe_world_lite.yaml").is_file()
    assert "CC0-1.0" in (made / "SOURCES.md").read_text()


def unscored(finished: Project, folder: Path) -> Project:
    """Return a copy of a finished run without model answers."""
    shutil.copytree(finished.folder, folder, symlinks=True, dirs_exist_ok=True)
    for name in ("scores", "tables", "report"):
        shutil.rmtree(folder / "results/embedded" / name)
    shutil.rmtree(folder / "logs/embedded/probes")
    shutil.rmtree(folder / "data/answers")
    return Project.again(folder)


def test_a_run_killed_while_scoring_resumes_to_the_same_result(finished, tmp_path):
    broken = unscored(finished, tmp_path)
    process = subprocess.Popen(
        broken.command(cores=1), cwd=broken.folder, env=broken.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    scores = broken.folder / "results/embedded/scores/world_lite/templates/sentence"
    logs = broken.folder / "logs/embedded/probes"
    until = time.monotonic() + 600

    def asked() -> set[str]:
        """Models with a job record: scores are written before a job ends, and some jobs have
        none."""
        return {path.stem for path in logs.glob("*.json")}

    # one model is scored, the next one has begun
    while not (
        asked() & {path.stem for path in scores.glob("*.parquet")}
        and {path.stem for path in logs.glob("*.log")} - asked()
    ):
        assert time.monotonic() < until, "the run did not come to its second model"
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = {p: p.stat().st_mtime_ns for p in scores.glob("*.parquet") if p.stem in asked()}
    assert done
    configs = list(broken.folder.glob("results/embedded/models/*/config.json"))
    models = {p: p.stat().st_mtime_ns for p in configs}
    result = broken.run(cores=1)
    assert result.returncode == 0, result.stdout[-4000:]
    assert broken.hashes(*SAME) == finished.hashes(*SAME)
    for path, time_made in {**done, **models}.items():
        assert path.stat().st_mtime_ns == time_made, f"{path.name} was made again"


def failed(made: Project, *arguments: str) -> str:
    """Return the output of a failing job before Snakemake's messages: one screen."""
    result = made.run(*arguments)
    assert result.returncode == 1, result.stdout
    assert "error in rule" in result.stdout, result.stdout
    shown = result.stdout[result.stdout.index("error in rule") :].split("RuleException")[0]
    assert len(shown.splitlines()) <= 24
    assert "Traceback" not in shown
    return shown


def own_resources(folder: Path) -> Project:
    made = project(folder)
    (folder / "resources").unlink()
    subprocess.run(["cp", "-r", str(ROOT / "resources"), str(folder / "resources")], check=True)
    return made


def test_a_broken_query_is_reported_with_its_name_and_engine_message(tmp_path):
    made = own_resources(tmp_path)
    made.edit("resources/queries/wikidata/facts.rq", "OPTIONAL {", "OPTONAL {")
    shown = failed(made, "--", "results/embedded/sources/world/facts.parquet")
    assert "rule pull_facts (source=world)" in shown
    assert "facts.rq" in shown
    assert not (tmp_path / "results/embedded/sources/world/facts.parquet").exists()
