"""Names used by the scripts of rules exist; no type checker reads these scripts."""

import ast
import importlib
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "workflow/scripts").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_name_of_the_package_exists(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: dict[str, object] = {}
    named = 0
    for node in ast.walk(tree):
        if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kgprobe")):
            continue
        for alias in node.names:
            named += 1
            parent = importlib.import_module(node.module or "")
            if not hasattr(parent, alias.name):
                importlib.import_module(f"{node.module}.{alias.name}")
            found = getattr(parent, alias.name)
            if type(found).__name__ == "module":
                modules[alias.asname or alias.name] = found
    assert named or path.stem == "lint"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            assert module is None or hasattr(module, node.attr), (
                f"{path.name}, line {node.lineno}: {node.value.id}.{node.attr}"
            )
