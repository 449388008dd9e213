"""Comments and docstrings name pages that exist, and sections that these have."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: a comment, or a text in triple quotes
TEXT = re.compile(r'#.*(?:\n *#.*)*|"""(?:.|\n)*?"""')
PAGE = re.compile(r"((?:[\w.-]+/)*[\w-]+\.md)\b(?:, (?=([A-Z].*)))?")


def named(folder: str) -> list[tuple[str, str, str]]:
    """(file, page, what stands behind it and a comma) of every page that is named in `folder`."""
    paths = [p for kind in ("py", "smk", "yaml") for p in (ROOT / folder).rglob(f"*.{kind}")]
    return [
        (path.name, page, behind)
        for path in sorted(paths)
        for text in TEXT.findall(path.read_text(encoding="utf-8"))
        for page, behind in PAGE.findall(" ".join(re.sub(r"\n *#:?", " ", text).split()))
    ]


def test_every_page_that_a_comment_names_is_there_with_the_section():
    pages = [
        one for folder in ("src", "workflow", "tests", "perf", "tools") for one in named(folder)
    ]
    assert len(pages) > 60
    assert not [one for one in pages if not (ROOT / one[1]).is_file()]
    for name, page, behind in pages:
        sections = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert not behind or behind.startswith(tuple(sections)), (name, page, behind[:40])
