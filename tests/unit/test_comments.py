"""Comments and docstrings refer only to pages and sections that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: a comment, or a text in triple quotes
TEXT = re.compile(r'#.*(?:\n *#.*)*|"""(?:.|\n)*?"""')
PAGE = re.compile(r"((?:[\w.-]+/)*[\w-]+\.md)\b(?:, (?=([A-Z].*)))?")


def named(folder: str) -> list[tuple[str, str, str]]:
    """Return (file, page, text after the page and a comma) for every page named in `folder`."""
    paths = [p for kind in ("py", "smk", "yaml") for p in (ROOT / folder).rglob(f"*.{kind}")]
    return [
        (path.name, page, behind)
        for path in sorted(paths)
        for text in TEXT.findall(path.read_text(encoding="utf-8"))
        for page, behind in PAGE.findall(" ".join(re.sub(r"\n *#:?", " ", text).split()))
    ]


def test_pages_named_in_comments_exist_with_their_sections():
    pages = [
        one for folder in ("src", "workflow", "tests", "perf", "tools") for one in named(folder)
    ]
    assert len(pages) > 60
    assert not [one for one in pages if not (ROOT / one[1]).is_file()]
    for name, page, behind in pages:
        sections = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert not behind or behind.startswith(tuple(sections)), (name, page, behind[:40])
