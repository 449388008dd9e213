"""Decisions in docs/papers: every setting they mention exists, with the stated values."""

import csv
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgprobe.benchmarks.ontoprobe.modes import MODES, SWITCHES
from kgprobe.probes.prompts.search.settings import settings_for
from kgprobe.settings import Settings
from kgprobe.settings.probes import SearchChanges

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/deviations.md").read_text()
PAPERS = ("bear", "ontoprobe", "attributes", "autoprompt")
HEADER = ["where", "paper", None, "ours", "setting"]
DASH = "–"
#: columns of the table that contain the value of a mode
MODE_COLUMNS = {"paper": 1, "released": 2, "default": 3}


def rows() -> Iterator[tuple[str, list[str]]]:
    """Yield (paper, cells) for every row of the tables."""
    for paper in PAPERS:
        section = (ROOT / f"docs/papers/{paper}.md").read_text().partition("\n## Decisions\n")[2]
        header, _, *lines = [li for li in section.splitlines() if li.startswith("|")]
        cells = [cell.strip() for cell in header.strip("|").split("|")]
        assert [a for a, b in zip(cells, HEADER, strict=True) if b] == [h for h in HEADER if h]
        for line in lines:
            yield paper, [cell.strip() for cell in line.strip("|").split("|")]


ROWS = list(rows())
NAMED = [(title, row) for title, row in ROWS if row[4] != DASH]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def formatted(value: Any) -> str:
    """Format a value as on the page."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def default(key: str) -> Any:
    """Return the default of a setting; raises AttributeError if it does not exist."""
    value: Any = Settings()
    for name in key.split("."):
        value = getattr(value, name)
    assert not dataclasses.is_dataclass(value), f"{key} is a section"
    return value


def values(key: str) -> dict[str, str]:
    """Return the value of a setting in each mode of the tables."""
    *section, name = key.split(".")
    if section == ["ontoprobe", "switches"]:
        return {mode: getattr(SWITCHES[name], mode) for mode in MODES}
    if section[0] == "autoprompt" and section[-1] == "settings":
        assert hasattr(SearchChanges(), name)
        assert hasattr(Settings().autoprompt, section[1])
        result = {m: getattr(settings_for(m, section[1], "masked"), name) for m in MODES}
        return {mode: formatted(value) for mode, value in result.items()}
    return {"default": formatted(default(key))}


def test_every_paper_has_a_table_without_empty_cells():
    counts = Counter(title for title, _ in ROWS)
    assert tuple(counts) == PAPERS
    assert min(counts.values()) > 10
    assert all(len(row) == 5 and all(row) for _, row in ROWS)


@pytest.mark.parametrize(("title", "row"), NAMED, ids=[row[4] for _, row in NAMED])
def test_settings_exist_with_the_stated_values(title, row):
    key, *column = quoted(row[4])
    if column:
        with (ROOT / key).open() as table:
            assert column[0] in next(csv.reader(table, delimiter="\t"))
        return
    for mode, value in values(key).items():
        assert quoted(row[MODE_COLUMNS[mode]])[:1] == [value], (key, mode)


def test_ontoprobe_switches_and_search_modes_are_documented():
    keys = {quoted(row[4])[0] for _, row in NAMED}
    assert {f"ontoprobe.switches.{name}" for name in SWITCHES} <= keys
    differing = set()
    for task in ("facts", "sst2"):
        made = [settings_for(mode, task, "masked") for mode in MODES]
        for name in (field.name for field in dataclasses.fields(SearchChanges)):
            if len({getattr(one, name) for one in made}) > 1:
                differing.add(name)
    assert len(differing) > 8
    assert differing <= {key.rpartition(".")[2] for key in keys if ".settings." in key}


def test_settings_mentioned_in_the_text_exist():
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    keys = {word for word in quoted(prose) if "." in word and "/" not in word}
    assert len(keys) == 3
    for key in keys:
        default(key)
    assert set(MODES) <= set(quoted(prose))
