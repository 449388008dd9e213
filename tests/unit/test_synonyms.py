"""Synonyms: the database's format, and the restrictions on what is replaced."""

import os
from pathlib import Path

import pytest

from kgprobe.probes.prompts.wordings import relations, synonyms
from kgprobe.sheets import read_table

ROOT = Path(__file__).parents[2]
LICENCE = "  1 A file of our own in the format of WordNet, for tests.\n"
#: part -> its synsets: (offset, words)
DATA = {
    "noun": [
        ("00000100", ["spouse", "partner", "better_half"]),
        ("00000200", ["region", "area", "part"]),
        ("00000300", ["Born", "Max_Born"]),
        ("00000400", ["owner", "proprietor"]),
        ("00000500", ["share", "portion"]),
        ("00000600", ["city", "metropolis"]),
        ("00000700", ["house", "home"]),
        ("00000800", ["ox", "neat"]),
    ],
    "verb": [
        ("00000100", ["depict", "picture", "show"]),
        ("00000200", ["share", "divide"]),
        ("00000300", ["carry", "bear"]),
    ],
    "adj": [("00000100", ["famous", "celebrated", "illustrious(p)"])],
    "adv": [("00000100", ["officially", "formally"])],
}


@pytest.fixture
def folder(tmp_path):
    for part, synsets in DATA.items():
        data, index = LICENCE, LICENCE
        first: dict[str, str] = {}
        for offset, words in synsets:
            listed = " ".join(f"{word} 0" for word in words)
            data += (
                f"{offset} 03 {part[0]} {len(words):02x} {listed} 000 | a gloss; born, capital\n"
            )
            for word in words:
                first.setdefault(word.split("(")[0].lower(), offset)
        for lemma, offset in first.items():
            # a second sense, which must not be used
            index += f"{lemma} {part[0]} 2 1 @ 2 1 {offset} {synsets[0][0]}  \n"
        (tmp_path / f"data.{part}").write_text(data)
        (tmp_path / f"index.{part}").write_text(index)
    (tmp_path / "noun.exc").write_text("oxen ox\n")
    (tmp_path / "verb.exc").write_text("bore bear\nborn bear\n")
    return tmp_path


def test_the_files_are_read_first_sense_first(folder):
    found = synonyms.read(folder)
    assert found.synonyms["noun"]["spouse"] == ("partner",)
    assert found.synonyms["noun"]["area"] == ("region", "part")
    assert found.synonyms["adj"]["famous"] == ("celebrated", "illustrious")
    assert "born" not in found.synonyms["noun"]
    assert found.irregular >= {"born", "bear", "oxen", "ox"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("spouse", ["partner"]),
        ("spouses", ["partners"]),
        ("cities", ["metropolises"]),
        ("houses", ["homes"]),
        ("depicts", ["pictures", "shows"]),
        ("depicted", ["pictured", "showed"]),
        ("officially", ["formally"]),
        ("share", []),  # noun and verb
        ("shares", []),
        ("born", []),  # irregular, and the physicist
        ("carried", []),  # bear would need another form
        ("oxen", []),
        ("unknown", []),
    ],
)
def test_inflection_is_carried_over_or_the_word_stays(folder, word, expected):
    assert synonyms.inflected_synonyms(word, synonyms.read(folder)) == expected


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("The spouse of [X] is [Y].", ["spouse > partner"]),
        ("Spouse of [X] is [Y].", []),
        ("The Spouse of [X] is [Y].", []),
        ("[X] was born in [Y].", []),
        ("A famous [X] is [Y].", ["famous > celebrated"]),
        ("[X] is an owner of [Y].", []),
        ("[X] is the owner of [Y].", ["owner > proprietor"]),
        ("[X]-owner is [Y].", []),
        ("[X]'s owner is [Y].", ["owner > proprietor"]),
    ],
)
def test_restrictions(folder, text, changes):
    found = synonyms.replacements(text, synonyms.read(folder))
    assert [change for _, change in found] == changes
    for made, change in found:
        old, new = change.split(" > ")
        assert made == text.replace(old, new)
        assert made.count("[X]") == made.count("[Y]") == 1


def test_variants_are_seeded_per_template_and_fewer_are_a_subset(folder):
    found = synonyms.read(folder)
    base = relations.Wording(
        "P26/0", "P26", "own", "The area of the spouse of [X] officially is [Y]."
    )
    other = relations.Wording("P1/0", "P1", "own", "The famous area of [X] is [Y].")
    both = synonyms.variants([base, other], found)
    assert both["P26/0"] == synonyms.variants([base], found)["P26/0"]
    assert len(both["P26/0"]) == 2
    assert synonyms.variants([base], found, most=1)["P26/0"] == both["P26/0"][:1]
    chosen = relations.with_variants({"P26": [base]}, both, "synonym")["P26"]
    assert [(w.kind, w.parent) for w in chosen[1:]] == [("synonym", "P26/0")] * 2
    assert all(w.change for w in chosen[1:])


def test_missing_files_and_bad_lines_are_named(folder):
    (folder / "index.adv").unlink()
    (folder / "data.verb").unlink()
    with pytest.raises(FileNotFoundError, match=r"missing data\.verb, index\.adv; set wording\."):
        synonyms.read(folder)
    bad = {"data.adv": "00000100 02 r zz broken\n", "index.adv": "broken r 1 0 1 0 00000100\n"}
    for name, text in bad.items():
        (folder / name).write_text(text)
    (folder / "data.verb").write_text("")
    (folder / "index.verb").write_text("")
    with pytest.raises(ValueError, match="is not a line of WordNet"):
        synonyms.read(folder)


def test_the_real_database_replaces_words_and_never_born_or_capital():
    path = Path(os.environ.get("KGPROBE_WORDNET", "/usr/share/wordnet"))
    if not (path / "data.noun").is_file():
        pytest.skip(f"no WordNet database in {path}: set KGPROBE_WORDNET (Debian: wordnet-base)")
    found = synonyms.read(path)
    assert sum(map(len, found.synonyms.values())) > 60000
    folder = ROOT / "resources" / "templates"
    both = [read_table(folder / f"{name}.tsv") for name in ("templates", "attributes")]
    table = relations.join(*both)
    made = synonyms.variants([w for ws in table.values() for w in ws], found)
    changes = [change for some in made.values() for _, change in some]
    assert len(changes) > 500
    replaced = {change.split(" > ")[0] for change in changes}
    assert not replaced & {"born", "capital", "located", "the", "an"}
    assert all(change == change.lower() for change in changes)
