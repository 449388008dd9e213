"""environment.yml, constraints.txt and pyproject.toml say the same."""

import tomllib
from pathlib import Path

import yaml

import kgprobe

ROOT = Path(__file__).parents[2]


def pins() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return {*project["dependencies"], *extras["test"], *extras["weights"]}


def test_conda_environment_repeats_the_pins() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = [d["pip"] for d in environment["dependencies"] if isinstance(d, dict)]
    assert set(pip) - {"-e ."} == pins()
    assert "-e ." in pip


def test_every_dependency_is_pinned_exactly() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = extras["optional-dependencies"].values()
    assert all("==" in pin for pin in [*pins(), *(pin for extra in optional for pin in extra)])


def test_constraints_agree_with_the_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = {
        line.split("==")[0].lower(): line.split("==")[1] for line in lines if "==" in line
    }
    for pin in pins():
        name, version = pin.lower().split("==")
        # an extra is no name of a package
        assert constraints[name.split("[")[0]] == version, f"constraints.txt has another {name}"


def test_the_version_has_one_place() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == kgprobe.__version__
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
