"""The released BEAR and BEAR-big: counts of docs/papers/bear.md, and errors of broken copies."""

import json
import shutil

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import released
from kgprobe.benchmarks.bear.filters import fold
from kgprobe.benchmarks.bear.frames import check_balance
from kgprobe.benchmarks.bear.released import ReleasedError

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def small(real_data):
    return released.load(real_data / "bear/BEAR")


@pytest.fixture(scope="module")
def big(real_data):
    return released.load(real_data / "bear/BEAR-big", benchmark="bear_big_released")


def options_per_item(sets) -> pl.DataFrame:
    sizes = sets.candidates.group_by(candidates="set").len("k")
    return sets.items.join(sizes, on="candidates")


@pytest.mark.parametrize(
    ("name", "relations", "instances", "sentences", "baseline", "macro"),
    [("small", 60, 7731, 209499, 4.682, 4.260), ("big", 78, 40916, 2803084, 2.532, 2.282)],
)
def test_sizes_and_baselines(request, name, relations, instances, sentences, baseline, macro):
    sets = request.getfixturevalue(name)
    assert sets.items["relation"].n_unique() == relations
    assert sets.items.height == instances
    sized = options_per_item(sets)
    assert sized["k"].sum() == sentences
    chance = (100 / sized["k"]).mean()
    assert chance == pytest.approx(baseline, abs=6e-4)
    per_relation = sized.group_by("relation").agg((100 / pl.col("k")).mean().alias("chance"))[
        "chance"
    ]
    assert per_relation.mean() == pytest.approx(macro, abs=6e-4)


@pytest.mark.parametrize("name", ["small", "big"])
def test_contracts_and_balance(request, name):
    sets = request.getfixturevalue(name)
    schema.check(sets.items, schema.ITEMS)
    schema.check(sets.candidates, schema.CANDIDATES)
    schema.check(sets.prompts, schema.PROMPTS)
    check_balance(sets)


def test_size_rule_and_ties_of_rounding(small, big):
    for sets, total, ceiling in ((small, 150, 25), (big, 600, 100)):
        sized = (
            options_per_item(sets).group_by("relation").agg(pl.len().alias("n"), pl.col("k").max())
        )
        many = sized.filter(pl.col("n") != pl.col("k"))
        for n, k in many.select("n", "k").rows():
            assert n // k == round(total / k)
        assert many["k"].max() == ceiling
    assert many.filter(pl.col("relation") == "P53").select("k", "n").row(0) == (48, 576)


def test_bear_has_the_indexed_rows_of_bear_big(real_data, small, big):
    chosen = json.loads((real_data / "bear/bear_lite_indices.json").read_text())
    assert len(chosen) == 60
    for relation, rows in chosen.items():
        assert rows
        of_big = big.items.filter(pl.col("relation") == relation).sort("row")["subject_id"]
        of_small = small.items.filter(pl.col("relation") == relation).sort("row")["subject_id"]
        assert of_big.gather(rows).to_list() == of_small.to_list()


def test_overlaps_that_the_release_left(small):
    gold = small.items.with_columns(index=pl.col("answers").list.first())
    joined = gold.join(small.candidates, left_on=["candidates", "index"], right_on=["set", "index"])
    held = joined.filter(
        pl.struct("subject", "label").map_elements(
            lambda r: r["label"].casefold() in r["subject"].casefold(), return_dtype=pl.Boolean
        )
    )
    assert held.height == 4
    assert fold("Monaco City") in {fold(s) for s in held["subject"]}


def test_answer_positions_of_the_templates(small, big):
    def counts(prompts: pl.DataFrame) -> tuple[int, int]:
        texts = prompts["text"].to_list()
        last = sum(t.rstrip(" .").endswith("[Y]") for t in texts)
        first = sum(t.index("[Y]") < t.index("[X]") for t in texts)
        return last, first

    assert counts(small.prompts) == (135, 27)
    assert counts(big.prompts) == (174, 32)


def test_relations_have_cardinality_and_domains(real_data, small):
    frame = released.relations(real_data / "bear/BEAR", small)
    schema.check(frame, released.RELATIONS)
    assert (frame["cardinality"] == "1:1").sum() == 14
    assert frame["domains"].list.len().max() == 3


def test_a_slice_is_sampled_by_seed_with_the_given_templates(real_data, small):
    sets = released.load(real_data / "bear/BEAR", instances=10, templates=[0])
    assert sets.items.height == 600
    assert sets.prompts["index"].unique().to_list() == [0]
    # rows keep their order, and come from all of the file
    drawn = sets.items.select("item").join(
        small.items.select("item", "relation", whole="row"), on="item", how="left"
    )
    assert drawn["whole"].null_count() == 0
    assert all(
        own["whole"].is_sorted() for _, own in drawn.group_by("relation", maintain_order=True)
    )
    assert drawn["whole"].max() > 100
    # a smaller slice is part of a larger one, and another seed draws others
    fewer = released.load(real_data / "bear/BEAR", instances=3, templates=[0])
    assert set(fewer.items["item"]) < set(sets.items["item"])
    others = released.load(real_data / "bear/BEAR", instances=10, templates=[0], seed=1)
    assert len(set(others.items["item"]) & set(sets.items["item"])) < 400


@pytest.fixture
def copied(real_data, tmp_path):
    folder = tmp_path / "BEAR"
    folder.mkdir()
    for name in ("P36.jsonl", "metadata_relations.json"):
        shutil.copyfile(real_data / "bear/BEAR" / name, folder / name)
    return folder


def test_broken_copies_are_reported_with_file_and_line(copied):
    path = copied / "P36.jsonl"
    text = path.read_text()
    lines = text.splitlines()
    path.write_text("\n".join([*lines[:2], lines[2][:-5], *lines[3:]]))
    with pytest.raises(ReleasedError, match=r"P36\.jsonl, line 3: not JSON"):
        released.load(copied)
    broken = json.loads(lines[1]) | {"answer_idx": 59}
    path.write_text("\n".join([lines[0], json.dumps(broken)]))
    with pytest.raises(
        ReleasedError, match=r"P36\.jsonl, line 2: answer Q\d+, index 59; the answer"
    ):
        released.load(copied)
    broken.pop("sub_label")
    path.write_text(json.dumps(broken))
    with pytest.raises(ReleasedError, match="line 1: without sub_label"):
        released.load(copied)
    (copied / "metadata_relations.json").unlink()
    with pytest.raises(ReleasedError, match=r"metadata_relations\.json: no such file"):
        released.load(copied)
