"""The house: data flows one way, and only probes import torch."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kgprobe"
FLOW = ["sources", "knowledge", "benchmarks", "probes", "tables"]
GROUND = {"schema", "contracts", "code", "files", "job", "sampling", "metrics", "sheets"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Dotted names of everything a module imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def room(name: str) -> str:
    """The room of a dotted name of the package: kgprobe.sources.sparql -> sources."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_stage_imports_the_ground_floor_and_the_stages_to_its_left(path):
    here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    allowed = GROUND | {""}
    if here in FLOW:
        allowed |= set(FLOW[: FLOW.index(here) + 1])
    rooms = {room(name) for name in imports(path) if name.split(".")[0] == "kgprobe"}
    assert rooms - {"__version__"} <= allowed


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_probes_import_torch(path):
    if path.relative_to(PACKAGE).parts[0] != "probes":
        heavy = {name.split(".")[0] for name in imports(path)} & {"torch", "transformers"}
        assert not heavy


@pytest.mark.parametrize("folder", ["models", "scoring"])
def test_models_and_scoring_run_on_a_bare_gpu_machine(folder):
    for path in (PACKAGE / "probes" / folder).glob("*.py"):
        outside = {name.split(".")[0] for name in imports(path)} & {"polars", "snakemake"}
        assert not outside, f"{path} imports {outside}"
        inside = {room(n) for n in imports(path) if n.split(".")[0] == "kgprobe"}
        assert inside <= {"probes", "", "__version__"}, f"{path} imports {inside}"


def test_every_stage_has_its_room_and_rule_file():
    for stage in FLOW:
        assert (PACKAGE / stage / "__init__.py").is_file()
        assert (ROOT / "workflow" / "rules" / f"{stage}.smk").is_file()


def test_the_snakefile_stays_short():
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= 45
