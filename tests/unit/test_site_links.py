"""The first page of the site is README.md: its links lead to files below docs/."""

import re
from pathlib import Path

import pytest

from docs.pages import linked

ROOT = Path(__file__).parents[2]


def test_links_of_the_first_page_into_docs_lead_to_files_below_docs():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for folder in (Path(), Path("docs")):
        text = linked(text, folder)
    places = re.findall(r"\]\(([^)\s#]+)", text)
    assert {"flow.svg", "results.svg", "reading.md"} <= set(places)
    assert not [place for place in places if place.startswith("docs/")]


@pytest.mark.parametrize("name", ["sizes.svg", "tutorials/dump.md"])
def test_a_link_from_the_root_loses_its_folder(name):
    assert linked(f"[it](docs/{name}#a)", Path()) == f"[it]({name}#a)"
