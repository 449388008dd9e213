"""LPAQA's and LAMA's published wordings, read from the folder of real data."""

import pytest

from kgprobe.probes.prompts.wordings.published import read_single, read_weighted, usable

pytestmark = pytest.mark.real
NOTHING_CAUSAL = {
    "mine": ["P1412"],
    "paraphrase": ["P106", "P108", "P1412", "P176", "P413", "P47", "P527", "P530"],
}


@pytest.mark.parametrize(
    ("part", "total", "object_first", "least", "most"),
    [("mine", 1166, 710, 6, 29), ("paraphrase", 1073, 237, 13, 30)],
)
def test_lpaqa_has_the_counts_of_the_specification(
    real_data, part, total, object_first, least, most
):
    folder = real_data / "lama" / "lpaqa" / part
    relations = sorted(path.stem for path in folder.glob("*.jsonl"))
    read = {name: read_weighted(folder, name) for name in relations}
    causal = [usable(name, found, "causal") for name, found in read.items()]
    assert len(relations) == 41
    assert sum(map(len, read.values())) == total
    assert (min(map(len, read.values())), max(map(len, read.values()))) == (least, most)
    assert sum(found.object_first for found in causal) == object_first
    left = [found for found in causal if found.wordings]
    assert all(sum(w.weight for w in found.wordings) == pytest.approx(1) for found in left)
    # for some relations every wording has the object first: no ensemble for a causal model
    assert [f.relation for f in causal if not f.wordings] == NOTHING_CAUSAL[part]


@pytest.mark.parametrize(("name", "count"), [("LPAQA", 41), ("LAMA", 46), ("AutoPrompt", 41)])
def test_lists_with_one_template_per_relation(real_data, name, count):
    found = read_single(real_data / "lama" / "optiprompt" / f"{name}_relations.jsonl")
    assert len(found) == count
    if name == "LAMA":
        assert found["P19"].text == "[X] was born in [Y] ."
