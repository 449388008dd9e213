"""Class names are unique in the whole package."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_class_names_are_unique():
    places = [
        (node.name, str(path.relative_to(ROOT)))
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    counts = Counter(name for name, _ in places)
    assert len(counts) > 250
    assert not [place for place in places if counts[place[0]] > 1]
