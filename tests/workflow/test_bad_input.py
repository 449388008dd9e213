"""Wrong config and sheets end before anything runs, with one screen and exit code 1."""

from pathlib import Path

import pytest

from tests.workflow.project import Project, screen


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    header = "paper benchmark prompt method model"
    row = "bear world_lite templates sentence control-masked"
    sheet = "".join("\t".join(line.split()) + "\n" for line in (header, row))
    (tmp_path / "config/experiments.small.tsv").write_text(sheet)
    return made


def refused(project: Project, *arguments: str) -> str:
    """The screen of a run that must fail at the start."""
    result = project.run("-n", *arguments)
    assert result.returncode == 1, result.stdout
    shown = screen(result.stdout)
    assert len(shown.splitlines()) <= 24, shown
    assert "Traceback" not in shown
    assert not (project.folder / "results").exists()
    return shown


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "world_lite",
            "world_light",
            "line 2: unknown benchmark 'world_light' (did you mean 'world_l",
        ),
        (
            "sentence",
            "sentense",
            "line 2: unknown method 'sentense' (did you mean 'sentence'?); legal",
        ),
        ("control-masked", "bert", "line 2: unknown model 'bert'"),
        ("templates", "template", "line 2: unknown prompt 'template'"),
        ("bear\t", "beer\t", "line 2, column 'paper': 'beer' is not one of"),
    ],
)
def test_an_unknown_name_in_the_experiments(project, old, new, message):
    project.edit("config/experiments.small.tsv", old, new)
    shown = refused(project)
    assert "config/experiments.small.tsv, " + message in shown


def test_an_unknown_config_key(project):
    shown = refused(project, "--config", "sead=1")
    assert "unknown key 'sead' (did you mean 'seed'?); legal: " in shown


def test_a_sheet_that_is_not_utf8(project):
    path = project.folder / "config/models.tsv"
    path.write_bytes(path.read_bytes().replace(b"trained here", b"trained h\xe9re", 1))
    shown = refused(project)
    assert "config/models.tsv, line " in shown
    assert "(0xe9) is not UTF-8; save the file as UTF-8" in shown


def test_a_missing_data_folder_is_named_with_the_variable_to_set(project, monkeypatch):
    monkeypatch.setenv("KGPROBE_DATA", "/nowhere/data")
    project.edit("config/experiments.small.tsv", "world_lite", "bear_released")
    shown = refused(project, "--config", "sources={bear: {folder: '${KGPROBE_DATA}/bear'}}")
    assert "no such file or folder: /nowhere/data/bear" in shown
    assert "set KGPROBE_DATA" in shown


def test_an_absent_data_set_is_named_with_the_key_to_set(project):
    project.edit(
        "config/experiments.small.tsv",
        "bear\tworld_lite\ttemplates\tsentence",
        "autoprompt\tauto_lama\tmanual\tpredict",
    )
    shown = refused(project)
    assert "sources.lama.access is absent, but trex_original is needed" in shown
