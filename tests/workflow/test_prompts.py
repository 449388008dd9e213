"""Prompt search as a user runs it: killed and restarted, bad rows of experiments."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.workflow.project import Project

pytestmark = pytest.mark.nightly(gate="unit/test_prompt_flow.py")

HEADER = "paper\tbenchmark\tprompt\tmethod\tmodel\n"
ROW = "autoprompt\tauto_world\t{}\tpredict\tcontrol-masked\n"
TARGET = "results/embedded/outcomes/auto_world/searched/control-masked.parquet"
MADE = ("results/embedded/prompts/searched", "results/embedded/outcomes")
KEPT = "data/answers"
#: long enough to be killed in the middle of it
ITERATIONS = 150


def project(folder: Path, *prompts: str) -> Project:
    made = Project(folder)
    rows = "".join(ROW.format(prompt) for prompt in prompts)
    (folder / "config/experiments.small.tsv").write_text(HEADER + rows)
    made.edit("config/embedded.yaml", "iterations: 40", f"iterations: {ITERATIONS}")
    return made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return an uninterrupted search."""
    made = project(tmp_path_factory.mktemp("prompts"), "manual", "searched")
    result = made.run("--", TARGET)
    assert result.returncode == 0, result.stdout[-4000:]
    return made


def test_a_killed_search_resumes_to_the_same_prompt(finished):
    expected = finished.hashes(*MADE)
    assert any(name.endswith("control-masked/P17.json") for name in expected)
    for folder in (*MADE, KEPT):
        shutil.rmtree(finished.folder / folder)
    process = subprocess.Popen(
        finished.command("--", TARGET, cores=1), cwd=finished.folder, env=finished.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    kept = finished.folder / KEPT
    until = time.monotonic() + 300
    while not list(kept.rglob("P30.state.json")):  # the second relation has begun
        assert time.monotonic() < until, "the search did not come to its second relation"
        assert process.poll() is None, "the search ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (finished.folder / TARGET).exists()
    result = finished.run("--", TARGET, cores=2)
    assert result.returncode == 0, result.stdout[-4000:]
    log = finished.folder / "logs/embedded/prompts/control-masked.log"
    assert "search goes on" in log.read_text()
    assert finished.hashes(*MADE) == expected
    assert not list(kept.rglob("*.state.json")), "finished searches leave no states"


def test_transfer_needs_the_model_that_prompts_come_from(tmp_path):
    made = project(tmp_path, "transferred")
    target = "results/embedded/outcomes/auto_world/prompts/control-masked.parquet"
    result = made.run("-n", "--", target)
    assert result.returncode == 1
    assert "name in autoprompt.transfer the model" in result.stdout
