"""Majority and best constant answer on LAMA's facts (docs/papers/autoprompt.md, Controls)."""

import json

import polars as pl
import pytest

from kgprobe.metrics.ranking import hit_at
from kgprobe.probes.ranked import constant, majority
from kgprobe.tables import results
from kgprobe.tables.autoprompt import make, section
from tests.unit.prompt_examples import examples
from tests.unit.prompt_outcomes import answered, the

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def lama(real_data):
    rows = [
        {"group": folder.name, "split": split, "label": json.loads(line)["obj"]}
        for folder in sorted((real_data / "lama" / "trex_original").iterdir())
        for split in ("train", "test")
        for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return examples(
        {**row, "example": f"{n:06d}", "fact": f"{n:06d}"} for n, row in enumerate(rows)
    )


def test_24_of_100_right_on_religion_is_marked_as_below_the_majority(lama):
    own = lama.filter(pl.col("group") == "P140")
    labels = own["label"].unique().sort().to_list()
    # a model that is right on every fourth fact
    found = majority(own, labels, ["test"]).with_columns(
        pl.when(pl.int_range(pl.len()) % 4 == 0).then(1).otherwise(2).cast(pl.Int32).alias(name)
        for name in ("best", "worst", "filtered_best", "filtered_worst")
    )
    asked = answered("auto_lama", "searched", own, found)
    made = list(make.measure([asked], [], {}))
    for model in ("majority", "constant"):
        constant_ = the(made, "P@1", group="P140", model=model)
        assert constant_.value == pytest.approx(53.7, abs=0.05)
        assert constant_.n == 473
    frame = results.frame("autoprompt", made).filter(pl.col("group") == "P140")
    (row,) = frame.filter(metric="P@1", prompt="searched").to_dicts()
    assert section.majorities(frame)(row) == pytest.approx(53.7, abs=0.05)
    train, test = (own.filter(pl.col("split") == s)["label"].to_list() for s in ("train", "test"))
    seen = the(made, "test objects seen in train", group="P140")
    assert (seen.n, seen.value) == (12, 100 * len(set(test) & set(train)) / len(set(test)))
    apart = sum(
        abs(train.count(o) / len(train) - test.count(o) / len(test)) for o in {*train, *test}
    )
    variation = the(made, "total variation, train to test", group="P140").value
    assert variation == pytest.approx(100 * apart / 2)


def expected_rates(frame):
    """Return the expected P@1 in percent by group."""
    own = frame.partition_by("group", as_dict=True)
    return {
        group: 100 * hit_at(1, f["best"].to_numpy(), f["worst"].to_numpy()).mean()
        for (group,), f in own.items()
    }


def each(lama, answer):
    """Return the baseline of each relation, with its labels as options."""
    frames = [
        answer(own, own["label"].unique().sort().to_list(), ["test"])
        for own in lama.partition_by("group")
    ]
    return expected_rates(pl.concat(frames))


def test_macro_averages_and_single_relations_are_those_of_the_specification(lama):
    trained, best = each(lama, majority), each(lama, constant)
    assert len(trained) == 41
    assert sum(trained.values()) / 41 == pytest.approx(17.3, abs=0.05)
    assert sum(best.values()) / 41 == pytest.approx(22.0, abs=0.05)
    for relation, one, other in [("P413", 41.7, 41.7), ("P106", 14.3, 33.9), ("P108", 7.8, 58.0)]:
        assert trained[relation] == pytest.approx(one, abs=0.05)
        assert best[relation] == pytest.approx(other, abs=0.05)
