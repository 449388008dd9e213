"""Majority and best constant answer on LAMA's facts (autoprompt.md, sections 8 and 16)."""

import json

import polars as pl
import pytest

from kgprobe.metrics.ranking import hit_at
from kgprobe.probes.baselines.majority import constant, majority
from tests.unit.prompt_examples import examples

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


def shares(frame):
    """group -> expected P@1 in percent."""
    own = frame.partition_by("group", as_dict=True)
    return {
        group: 100 * hit_at(1, f["best"].to_numpy(), f["worst"].to_numpy()).mean()
        for (group,), f in own.items()
    }


def each(lama, answer):
    """The baseline relation by relation, its labels as options."""
    frames = [
        answer(own, own["label"].unique().sort().to_list(), ["test"])
        for own in lama.partition_by("group")
    ]
    return shares(pl.concat(frames))


def test_macro_averages_and_single_relations_are_those_of_the_specification(lama):
    trained, best = each(lama, majority), each(lama, constant)
    assert len(trained) == 41
    assert sum(trained.values()) / 41 == pytest.approx(17.3, abs=0.05)
    assert sum(best.values()) / 41 == pytest.approx(22.0, abs=0.05)
    for relation, one, other in [("P413", 41.7, 41.7), ("P106", 14.3, 33.9), ("P108", 7.8, 58.0)]:
        assert trained[relation] == pytest.approx(one, abs=0.05)
        assert best[relation] == pytest.approx(other, abs=0.05)
