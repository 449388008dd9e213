"""LAMA's facts with options: samples of the real files, checked against the raw lines."""

import json
import shutil

import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import lama
from kgprobe.experiments import TableError
from kgprobe.settings.benchmarks import LamaOptions

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]


@pytest.fixture(scope="module")
def folder(real_data):
    return real_data / "lama"


@pytest.fixture(scope="module")
def sets(folder):
    return lama.load(folder / "trex_original", folder / "relations.jsonl", LamaOptions(), 0)


def facts(folder, relation, split):
    path = folder / "trex_original" / relation / f"{split}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_question_has_its_object_and_unstated_distractors(folder, sets):
    schema.check(sets.items, schema.ITEMS)
    schema.check(sets.candidates, schema.CANDIDATES)
    schema.check(sets.prompts, schema.PROMPTS)
    labels = {
        name[0]: own.sort("index")["label"].to_list()
        for name, own in sets.candidates.group_by("set")
    }
    assert (sets.items.height, sets.prompts.height) == (8174, 41)
    for relation in sets.items["relation"].unique().to_list():
        test = facts(folder, relation, "test")
        every = [
            row for split in ("train", "dev", "test") for row in facts(folder, relation, split)
        ]
        objects = {row["obj"] for row in test}
        own = sets.items.filter(relation=relation)
        assert own.height == min(200, len({row["sub"] for row in test}))
        for subject, options, answers in own.select("subject", "candidates", "answers").rows():
            stated = {row["obj"] for row in every if row["sub"] == subject}
            (answer,) = answers
            right, shown = labels[options][answer], set(labels[options])
            assert {"sub": subject, "obj": right} in test
            assert len(shown) == len(labels[options]) == min(30, 1 + len(objects - stated))
            assert shown - {right} <= objects - stated


def test_samples_are_seeded_and_nested(folder, sets):
    def drawn(settings, seed=0):
        made = lama.load(folder / "trex_original", folder / "relations.jsonl", settings, seed)
        return made, set(made.items["item"])

    few, names = drawn(LamaOptions(facts=20, options=5))
    assert names < set(sets.items["item"])
    small = set(few.candidates.select("set", "label").rows())
    assert small < set(sets.candidates.select("set", "label").rows())
    _, others = drawn(LamaOptions(facts=20, options=5), seed=1)
    assert len(names & others) < len(names) / 2


def test_one_to_one_relations_are_those_of_lama(folder, sets):
    found = lama.relations(folder / "relations.jsonl", sets)
    assert found.filter(cardinality="1:1")["relation"].to_list() == ["P1376", "P36"]
    assert found.height == 41


def test_missing_or_broken_files_are_reported(folder, tmp_path):
    templates, made = folder / "relations.jsonl", tmp_path / "facts"
    with pytest.raises(lama.LamaError, match="no such folder"):
        lama.load(made, templates, LamaOptions(), 0)
    shutil.copytree(folder / "trex_original/P36", made / "P36", copy_function=shutil.copyfile)
    (made / "P36").chmod(0o755)
    assert lama.load(made, templates, LamaOptions(), 0).items.height == 200
    path = made / "P36" / "test.jsonl"
    path.write_text(path.read_text().rstrip() + '\n{"sub": "Utopia"}\n')
    with pytest.raises(lama.LamaError, match=r"test\.jsonl, line \d+: obj is None, expected text"):
        lama.load(made, templates, LamaOptions(), 0)
    path.unlink()
    with pytest.raises(TableError, match=r"test\.jsonl: no such file"):
        lama.load(made, templates, LamaOptions(), 0)
    (made / "P9999").mkdir()
    (made / "P36").rename(tmp_path / "away")
    with pytest.raises(lama.LamaError, match="no template for P9999"):
        lama.load(made, templates, LamaOptions(), 0)
