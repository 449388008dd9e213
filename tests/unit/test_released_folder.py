"""A released folder that differs from BEAR's is read, or refused with file, line and remedy."""

import json
from pathlib import Path

import pytest

from kgprobe.benchmarks.bear.released import ReleasedError, load, relations

ROWS = [
    {"sub_id": "Q142", "sub_label": "France", "obj_id": "Q90", "obj_label": "Paris"},
    {"sub_id": "Q38", "sub_label": "Italy", "obj_id": "Q220", "obj_label": "Rome"},
]
TEXTS = ["The capital of [X] is [Y].", "[Y] is the capital of [X]."]


def folder(path: Path, entry: object, rows: list[object] | None = None) -> Path:
    lines = [json.dumps(row) for row in (ROWS if rows is None else rows)]
    (path / "P36.jsonl").write_text("\n".join(lines) + "\n")
    whole = json.dumps({"P1": {"templates": []}, "P36": entry}, indent=1)
    (path / "metadata_relations.json").write_text(whole)
    return path


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_than_three_templates_are_read(n, tmp_path):
    found = load(folder(tmp_path, {"templates": TEXTS[:n]}))
    assert found.prompts["text"].to_list() == TEXTS[:n]
    assert load(tmp_path, templates=[0]).prompts.height == 1


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"templates": TEXTS}, "2 templates; wanted is template 2, counted from 0; .*released"),
        ({"templates": []}, "0 templates; wanted is template 2"),
        ({"templates": None}, "0 templates; wanted is template 2"),
        ({}, "0 templates; wanted is template 2"),
        ({"templates": "[X] is [Y]."}, "templates is .*a list of texts"),
        ({"templates": [3]}, "templates is .*a list of texts"),
        (TEXTS[0], "templates is .*a list of texts"),
        ({"templates": TEXTS, "answer_space_ids": ["Q90", "Q7"]}, "2 answers and 1 labels"),
        ({"templates": TEXTS, "answer_space_ids": 3}, "answer_space_ids is '3'"),
        ({"templates": TEXTS, "answer_space_ids": ["Q90", "Q220", "Q90"]},
         "the answer Q90 stands 2 times in answer_space_ids"),
        ({"templates": [*TEXTS, "[X] in [Y]."], "answer_space_ids": ["Q220", "Q90"],
          "answer_space_labels": ["Paris", "Rome"]},
         "Q90 is 'Rome' in answer_space_labels, and 'Paris' in line 1 of P36.jsonl"),
    ],
)  # fmt: skip
def test_unreadable_files_are_reported_with_the_line(entry, words, tmp_path):
    with pytest.raises(ReleasedError, match=words) as caught:
        load(folder(tmp_path, entry), templates=(0, 1, 2))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/metadata_relations.json, P36: ")
    assert "line 5" in message


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"obj_id": ["Q90"]}, r"obj_id is \['Q90'\], expected text"),
        ({"sub_label": 5}, "sub_label is 5, expected text"),
        ({"sub_aliases": "Gaul"}, "sub_aliases is 'Gaul', expected a list of texts"),
        ({"sub_aliases": [1]}, r"sub_aliases is \[1\], expected a list of texts"),
        ({"answer_idx": "0"}, "answer Q90, index '0'; the answer space has it at 0"),
        ({"sub_label": "\ud800"}, "not JSON .*surrogates"),
        ({"sub_id": "Q38"}, "the subject Q38 stands on line 1, too; expected one line"),
    ],
)
def test_an_unreadable_instance_is_reported_with_its_line(cells, words, tmp_path):
    rows = [ROWS[1] | {"obj_id": "Q90"}, ROWS[0] | cells]
    with pytest.raises(ReleasedError, match=rf"P36\.jsonl, line 2: {words}"):
        load(folder(tmp_path, {"templates": TEXTS}, rows))


@pytest.mark.parametrize("name", ["metadata_relations.json", "relation_info.json"])
def test_an_unpaired_surrogate_is_reported_with_its_file(name, tmp_path):
    """It ended in a bare UnicodeEncodeError."""
    (tmp_path / "BEAR").mkdir()
    entry = {"templates": TEXTS, "answer_space_ids": ["Q90", "Q220"],
             "answer_space_labels": ["Paris", "Rome"]}  # fmt: skip
    found = load(folder(tmp_path / "BEAR", entry))
    path = tmp_path / name if name == "relation_info.json" else tmp_path / "BEAR" / name
    path.write_text(json.dumps({"P36": entry | {"domains": ["Pari\ud800s"]}}))
    words = rf"{path}: '.*Pari\\ud800' is not UTF-8; expected text"
    with pytest.raises(ReleasedError, match=words):
        relations(path.parent / "BEAR", found) if path.parent == tmp_path else load(path.parent)


def test_aliases_may_be_null(tmp_path):
    rows = [ROWS[0] | {"sub_aliases": None}]
    assert load(folder(tmp_path, {"templates": TEXTS}, rows)).items.height == 1


def test_labels_of_answers_without_their_ids_are_not_read(tmp_path):
    """Their order is undefined: each answer gets the label of its instances."""
    found = load(folder(tmp_path, {"templates": TEXTS, "answer_space_labels": ["Rome", "Paris"]}))
    assert found.candidates.select("id", "label").rows() == [("Q90", "Paris"), ("Q220", "Rome")]


def test_answers_of_one_label_are_reported(tmp_path, caplog):
    rows = [ROWS[0], ROWS[1] | {"obj_label": "Paris"}]
    assert load(folder(tmp_path, {"templates": TEXTS}, rows)).candidates.height == 2
    assert "2 answers have the label 'Paris'" in caplog.text


def test_metadata_that_is_a_list_is_reported(tmp_path):
    folder(tmp_path, {})
    (tmp_path / "metadata_relations.json").write_text("[]")
    with pytest.raises(ReleasedError, match="expected an entry per relation"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (["Geography"], "expected an entry per relation"),
        ({"P36": {"domains": "Geography"}}, "domains is 'Geography'; P36: expected a list"),
    ],
)
def test_invalid_domains_are_reported_with_their_file(info, words, tmp_path):
    (tmp_path / "BEAR").mkdir()
    found = load(folder(tmp_path / "BEAR", {"templates": TEXTS}))
    assert relations(tmp_path / "BEAR", found)["domains"].to_list() == [[]]
    path = tmp_path / "relation_info.json"
    path.write_text(json.dumps(info))
    with pytest.raises(ReleasedError, match=words) as caught:
        relations(tmp_path / "BEAR", found)
    assert str(path) in str(caught.value)
