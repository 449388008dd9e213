"""README.md is short, and the targets of its links exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_is_short_and_its_links_exist():
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 1200
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert pictures == ["docs/flow.svg", "docs/results.svg"]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 8
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)


def test_the_readme_lists_exactly_the_tested_pythons_and_systems():
    texts = [path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")]
    assert len(texts) == 2
    lines = [line for text in texts for line in re.findall(r"python-version: (.+)", text)]
    pythons = {found for line in lines for found in re.findall(r'"([\d.]+)"', line)}
    systems = {found for text in texts for found in re.findall(r"runs-on: (\w+)", text)}
    assert systems == {"ubuntu"}
    claim = f"(tested on {', '.join(sorted(pythons))}, Linux; macOS is untried)"
    assert claim in (ROOT / "README.md").read_text()
