"""The sentence templates: their form, and coverage of the embedded knowledge graph's relations."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from kgprobe.experiments import read_table

ROOT = Path(__file__).parents[2]
ROWS = read_table(ROOT / "resources" / "templates" / "templates.tsv")
BY_RELATION = defaultdict(list)
for row in ROWS:
    BY_RELATION[row["relation"]].append(row)
#: Properties of properties, whose values do not occur in sentences.
SCHEMATIC = {"P1647", "P1659", "P1696", "P2302", "P1628", "P1629", "P2308", "P2309"}


@pytest.mark.parametrize("relation", sorted(BY_RELATION))
def test_three_manual_templates_then_at_least_two_paraphrases(relation):
    rows = BY_RELATION[relation]
    assert [int(row["index"]) for row in rows] == list(range(len(rows)))
    assert [row["kind"] for row in rows[:3]] == ["manual"] * 3
    assert len(rows) >= 5
    assert {row["kind"] for row in rows[3:]} == {"paraphrase"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['relation']}-{row['index']}")
def test_one_subject_one_answer_one_full_stop(row):
    text = row["text"]
    assert text.count("[X]") == text.count("[Y]") == 1
    assert text.endswith(".")
    assert not text.endswith("..")
    assert text == " ".join(text.split())
    assert text[0].isupper() or text[0] == "["


def test_the_first_template_ends_with_the_answer():
    # required by the methods for causal models and soft prompts
    for rows in BY_RELATION.values():
        assert rows[0]["text"].endswith("[Y].")


def test_no_text_is_duplicated():
    assert [text for text, n in Counter(row["text"] for row in ROWS).items() if n > 1] == []


def test_every_relation_between_entities_of_the_world_has_templates():
    names = {}
    for row in read_table(ROOT / "resources" / "world" / "properties.tsv"):
        if row["datatype"] in ("item", "wikibase-item"):
            names[row["property"]] = row["id"]
    used = set()
    for path in sorted((ROOT / "resources" / "world").glob("facts_*.tsv")):
        header = next(line for line in path.read_text("utf-8").splitlines() if line[:1] != "#")
        used |= {names[name] for name in header.split("\t")[1:] if name in names}
    assert len(used) > 60
    assert used - SCHEMATIC - set(BY_RELATION) == set()
