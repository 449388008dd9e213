"""Files of wordings, and what a causal model can use of them."""

import json

import pytest

from kgprobe.probes.prompts.wordings.published import (
    PublishedTemplate,
    WordingError,
    read_single,
    read_weighted,
    usable,
)

TEXTS = {
    "[X] was born in [Y] .": 0.4,
    "[X] was born in [Y].": 0.1,
    "[Y] native [X] .": 0.3,
    "[X] , a [Y] native": 0.2,
}


def written(folder, rows):
    path = folder / "P19.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_masked_models_use_all_wordings_as_they_are(tmp_path):
    written(tmp_path, [{"template": t, "weight": w} for t, w in TEXTS.items()])
    read = read_weighted(tmp_path, "P19")
    found = usable("P19", read, "masked")
    assert [(w.text, w.weight) for w in found.wordings] == list(TEXTS.items())
    assert found.counts()["object_first"] == 0


def test_causal_models_lose_object_first_wordings_and_what_follows_the_answer():
    found = usable("P19", [PublishedTemplate(t, w) for t, w in TEXTS.items()], "causal")
    assert [w.text for w in found.wordings] == ["[X] was born in [Y]", "[X] , a [Y]"]
    assert [w.weight for w in found.wordings] == pytest.approx([0.5 / 0.7, 0.2 / 0.7])
    assert found.counts() == {
        "total": 4, "used": 2, "object_first": 1, "cut": 3, "cut_words": 1, "merged": 1,
        "weight_lost": 0.3,
    }  # fmt: skip


def test_nothing_may_be_left_for_a_causal_model():
    found = usable("P1412", [PublishedTemplate("[Y] native [X]")], "causal")
    assert found.wordings == []
    assert found.counts()["weight_lost"] == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"template": "[X] was", "weight": 1}], "P19.jsonl:1.*one \\[Y\\]"),
        ([{"template": "[X] [Y]", "weight": -1}], "P19.jsonl:1: weight -1"),
        ([{"template": "[X] [Y]"}], "weight None"),
        ([{"template": "[X] [Y]", "weight": 0.5}], "sum to 0.5"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, rows, message):
    written(tmp_path, rows)
    with pytest.raises(WordingError, match=message):
        read_weighted(tmp_path, "P19")


def test_a_missing_file_and_a_repeated_relation_are_errors(tmp_path):
    with pytest.raises(WordingError, match="KGPROBE_DATA"):
        read_weighted(tmp_path, "P19")
    path = written(tmp_path, [{"relation": "P1", "template": "[X] [Y]"}] * 2)
    with pytest.raises(WordingError, match="twice"):
        read_single(path)
