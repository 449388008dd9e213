"""The committed sample of synonyms: every row changes one word of an existing template."""

import re
from collections import Counter
from pathlib import Path

from kgprobe.experiments import read_table
from kgprobe.probes.prompts.variants import relations
from tests.unit.test_prompt_variants import TABLE

ROOT = Path(__file__).parents[2]
DRAWN = read_table(ROOT / "resources" / "templates" / "synonyms.tsv")
TEMPLATES = {template.id: template for some in TABLE.values() for template in some}


def test_every_row_replaces_a_word_of_its_template():
    assert len(DRAWN) > 1000
    assert max(Counter(row["prompt"] for row in DRAWN).values()) == 2
    assert len({tuple(row.values()) for row in DRAWN}) == len(DRAWN)
    for row in DRAWN:
        text = TEMPLATES[row["prompt"]].text
        assert re.search(rf"(?<![\w\[\]'-]){row['word']}(?![\w\[\]'-])", text), row
        assert row["synonym"] == row["synonym"].lower() != row["word"]
    assert not {row["word"] for row in DRAWN} & {"born", "capital", "located", "the", "an"}


def test_variants_follow_the_relation_s_templates_and_are_nested():
    owner = TEMPLATES["P127/3"]
    chosen = {"P127": [owner]}
    both = relations.with_synonyms(chosen, DRAWN, 2)["P127"]
    one = relations.with_synonyms(chosen, DRAWN, 1)["P127"]
    assert [w.text for w in both[1:]] == [
        "[X] is the belongings of [Y].",
        "[X] is the holding of [Y].",
    ]
    assert both[: len(one)] == one
    assert {(w.kind, w.parent) for w in both[1:]} == {("synonym", owner.id)}
    assert relations.with_synonyms(chosen, [], 2) == chosen
