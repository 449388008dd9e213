"""docs/troubleshooting.md has every error class of the package and only messages of the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text()


@pytest.fixture(scope="module")
def sources() -> list[ast.Module]:
    return [ast.parse(path.read_text()) for path in sorted((ROOT / "src").rglob("*.py"))]


def error_classes(trees: list[ast.Module]) -> set[str]:
    """Return public classes that are exceptions by the names of their base classes."""
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    found = {"Exception"}
    while True:
        more = {
            node.name for node in classes
            for base in map(ast.unparse, node.bases)
            if base in found or re.fullmatch(r"(\w+\.)?[A-Z]\w*Error", base)
        }  # fmt: skip
        if more <= found:
            return {name for name in found - {"Exception"} if not name.startswith("_")}
        found |= more


def rows(page: str) -> list[list[str]]:
    """Return the cells of the page's tables."""
    lines = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


FRAGMENTS = [
    (classes, part.strip())
    for message, *_, classes in rows(PAGE)
    for text in re.findall(r"`([^`]+)`", message)
    for part in text.split("...")
    if len(part.strip()) > 2
]


def test_every_error_class_has_a_row(sources):
    known = error_classes(sources)
    named = {name for *_, cell in rows(PAGE) for name in re.findall(r"`(\w+)`", cell)}
    assert len(known) > 60
    assert named == known


def test_the_words_of_a_message_are_in_the_code(sources):
    literals = "\n".join(
        node.value for tree in sources for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )  # fmt: skip
    assert len(FRAGMENTS) > 100
    assert not [(classes, part) for classes, part in FRAGMENTS if part not in literals]
