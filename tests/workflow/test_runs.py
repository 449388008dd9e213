"""The workflow makes an export that is asked for by name."""

import pytest

from tests.workflow.project import Project

pytestmark = pytest.mark.nightly(gate="mini/test_run.py")

EXPERIMENTS = """paper	benchmark	prompt	method	model
bear	world_lite	templates	sentence	control-masked
"""


def test_questions_are_exported_on_request(tmp_path):
    project = Project(tmp_path)
    (tmp_path / "config/experiments.small.tsv").write_text(EXPERIMENTS)
    folder = "results/embedded/exports/lm-eval/world_lite"
    result = project.run("--", folder)
    assert result.returncode == 0, result.stdout[-4000:]
    assert (tmp_path / folder / "kgprobe_world_lite.yaml").is_file()
    assert "CC0-1.0" in (tmp_path / folder / "SOURCES.md").read_text()
