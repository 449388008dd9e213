"""The targets of links in README.md and docs/ exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_targets_of_links_exist():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 8
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)
