"""The house: one declared picture of who may import whom (pyproject.toml, import-linter)."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kgprobe"
FLOW = ["sources", "knowledge", "benchmarks", "probes", "tables"]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def lint(folder, *contracts):
    """What import-linter says of the package in a folder, under the project's contracts."""
    command = ["lint-imports", "--no-cache", *(f"--contract={name}" for name in contracts)]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_declared_picture_holds():
    """Stages, the rooms of probes and tables, papers, torch, the bare machine, no circle."""
    found = lint(ROOT)
    assert found.returncode == 0, found.stdout
    assert f"{len(CONTRACTS)} kept, 0 broken" in found.stdout
    assert len(CONTRACTS) >= 9


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("tables/bear/make", "from kgprobe.benchmarks.ontoprobe import concepts", "bear"),
        ("sources/world/build", "from kgprobe.knowledge import facts", "flow"),
        ("probes/models/load", "from kgprobe.probes.scoring.fill import rows", "probes"),
        ("tables/views", "import torch", "torch"),
        ("probes/text/gaps", "import polars", "bare"),
        ("sources/sparql/paging", "from kgprobe.sources.sparql import pull", "circles"),
        ("tables/results", "from kgprobe.tables.report import grid", "tables"),
        ("tables/results", "from kgprobe.plan import jobs", "flow"),
        ("plan/table", "import torch", "torch"),
        ("newcomer", "", "flow"),
    ],
)
def test_a_line_that_breaks_the_picture_is_told(tmp_path, module, line, contract):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "src" / "kgprobe")
    path = tmp_path / "src" / "kgprobe" / f"{module}.py"
    path.write_text(f"{path.read_text() if path.exists() else ''}\n{line}\n")
    found = lint(tmp_path, contract)
    assert found.returncode == 1
    assert "0 kept, 1 broken" in found.stdout


def test_a_transformer_is_cut_into_body_and_head_in_one_module():
    """Others take the parts; what trains layers of its own reads the last states too."""
    cuts = ("get_encoder", "get_decoder", "last_hidden_state")
    found = {
        str(path.relative_to(PACKAGE / "probes"))
        for path in (PACKAGE / "probes").rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in cuts)
    }
    assert found == {"models/parts.py", "baselines/classified.py", "control/train.py"}
    told = [p for p in (PACKAGE / "probes").rglob("*.py") if "\nAGREEMENT" in p.read_text()]
    assert [p.name for p in told] == ["checks.py"], "one tolerance for all checks"


def test_every_stage_has_its_room_and_rule_file():
    for stage in FLOW:
        assert (PACKAGE / stage / "__init__.py").is_file()
        assert (ROOT / "workflow" / "rules" / f"{stage}.smk").is_file()


def test_the_snakefile_stays_short():
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= 45
