"""pyproject.toml has version ranges, constraints.txt pins one version of each for installation."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kgprobe"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: modules whose name differs from their distribution
DISTRIBUTIONS = {"ibis": "ibis-framework", "vl_convert": "vl-convert-python", "yaml": "pyyaml"}
#: extra -> modules that may import its packages at the top level
EXTRA_MODULES = {
    "sources": ("sources/",),
    "workflow": ("config.py", "guard.py", "plan/", "knowledge/", "benchmarks/attributes/"),
}


def requirements(extra: str = "") -> list[Requirement]:
    return [Requirement(text) for text in (EXTRAS[extra] if extra else PROJECT["dependencies"])]


def names(extra: str = "") -> set[str]:
    return {canonicalize_name(r.name) for r in requirements(extra)}


def pinned() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


@pytest.mark.parametrize("extra", ["", *sorted(EXTRAS)])
def test_every_range_has_two_bounds_and_a_pin_inside(extra):
    result, known = requirements(extra), pinned()
    assert result
    for requirement in result:
        signs = {s.operator for s in requirement.specifier}
        # Arrow and MarkupSafe raise their major version without breaking the parts used here
        assert ">=" in signs, requirement
        assert "<" in signs or requirement.name in ("pyarrow", "MarkupSafe"), requirement
        version = known[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement}: the pin is {version}"


def imported(path: Path) -> Iterator[str]:
    """Return the distributions imported at the top level of a module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in {name.split(".")[0] for name in modules} - {*sys.stdlib_module_names}:
            if module != "kgprobe":
                yield canonicalize_name(DISTRIBUTIONS.get(module, module))


def test_core_imports_only_declared_dependencies():
    """Imports from an extra are in that extra's modules, or inside functions."""
    seen = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        legal = names()
        for extra, rooms in EXTRA_MODULES.items():
            legal |= names(extra) if place.startswith(rooms) else set()
        result = set(imported(path))
        assert result <= legal, f"{place}: {sorted(result - legal)}"
        seen |= result
    assert {"polars", "torch", "transformers", "ibis-framework", "orjson"} <= seen
