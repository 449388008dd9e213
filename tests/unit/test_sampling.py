"""Seeded hash samples are stable, as the attributes and BEAR require."""

import polars as pl
import pytest

from kgprobe.sampling import hash_key, take

FRAME = pl.DataFrame({"p": ["a"] * 500 + ["b"] * 20, "id": [f"Q{i}" for i in range(520)]})


def ids(frame: pl.DataFrame) -> set[str]:
    return set(frame["id"])


def test_a_key_is_the_same_on_every_machine():
    assert hash_key(0, "P36", "Q142") == 2537941647613878760
    assert hash_key(1, "P36", "Q142") != hash_key(0, "P36", "Q142")


def test_row_order_is_irrelevant():
    assert take(FRAME, 50, 0, ["id"], ["p"]).equals(take(FRAME.reverse(), 50, 0, ["id"], ["p"]))


def test_a_smaller_sample_is_a_subset():
    assert ids(take(FRAME, 20, 0, ["id"])) < ids(take(FRAME, 60, 0, ["id"]))


def test_an_added_candidate_swaps_at_most_one():
    before = ids(take(FRAME, 50, 0, ["id"], ["p"]))
    for i in range(1000, 1040):
        more = pl.concat([FRAME, pl.DataFrame({"p": ["a"], "id": [f"Q{i}"]})])
        after = ids(take(more, 50, 0, ["id"], ["p"]))
        assert len(before - after) <= 1
        assert len(after - before) <= 1


def test_a_stratum_smaller_than_n_is_sampled_whole():
    sample = take(FRAME, 50, 0, ["id"], ["p"])
    assert sample.group_by("p").len().sort("p")["len"].to_list() == [50, 20]


def test_seed_and_label_change_the_sample():
    assert ids(take(FRAME, 50, 0, ["id"])) != ids(take(FRAME, 50, 1, ["id"]))
    assert ids(take(FRAME, 50, 0, ["id"], label="x")) != ids(take(FRAME, 50, 0, ["id"], label="y"))


def test_repeated_ids_are_refused():
    with pytest.raises(ValueError, match="needs unique ids"):
        take(pl.concat([FRAME, FRAME]), 5, 0, ["id"])
