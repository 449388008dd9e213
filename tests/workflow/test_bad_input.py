"""Wrong configs and tables stop before any job, with one screen of output and exit code 1.

Message texts are tested with their readers (unit/test_experiments, unit/test_settings); this file
tests that they reach the user.
"""

from pathlib import Path

import pytest

from tests.workflow.project import CONFIGS, Project, screen


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    header = "paper benchmark prompt method model"
    row = "bear world_lite templates sentence control-masked"
    rows = "".join("\t".join(line.split()) + "\n" for line in (header, row))
    (tmp_path / "config/experiments.small.tsv").write_text(rows)
    return made


@pytest.fixture
def refused(planner, project):
    """Plan a run that must fail at the start, and return its output."""
    return lambda *words, **environment: failing(planner, project, *words, **environment)


def failing(planner, project: Project, *words: str, **environment: str) -> str:
    result = planner.plan(project.folder, "--configfile", *CONFIGS, *words, **environment)
    assert result.returncode == 1, result.stdout
    shown = screen(result.stdout)
    assert len(shown.splitlines()) <= 24, shown
    assert "Traceback" not in shown
    assert not (project.folder / "results").exists()
    return shown


def test_an_unknown_name_in_the_experiments(project, refused):
    project.edit("config/experiments.small.tsv", "world_lite", "world_light")
    message = "line 2: unknown benchmark 'world_light' (did you mean 'world_l"
    assert f"config/experiments.small.tsv, {message}" in refused()


def test_an_unknown_config_key(project, refused):
    shown = refused("--config", "sead=1")
    assert "unknown key 'sead' (did you mean 'seed'?); valid: " in shown


def test_a_table_that_is_not_utf8(project, refused):
    path = project.folder / "config/models.tsv"
    path.write_bytes(path.read_bytes().replace(b"shipped; trained", b"shipped; tr\xe9ined", 1))
    shown = refused()
    assert "config/models.tsv, line " in shown
    assert "(0xe9) is not UTF-8; save the file as UTF-8" in shown


def test_a_missing_data_folder_is_reported_with_the_variable_to_set(project, refused):
    project.edit("config/experiments.small.tsv", "world_lite", "bear_released")
    folder = "sources={bear: {folder: '${KGPROBE_DATA}/bear'}}"
    shown = refused("--config", folder, KGPROBE_DATA="/nowhere/data")
    assert "no such file or folder: /nowhere/data/bear" in shown
    assert "set KGPROBE_DATA" in shown


def test_an_absent_data_set_is_reported_with_the_key_to_set(project, refused):
    project.edit(
        "config/experiments.small.tsv",
        "bear\tworld_lite\ttemplates\tsentence",
        "autoprompt\tauto_lama\tmanual\tpredict",
    )
    assert "sources.lama.access is absent, but trex_original is needed" in refused()
