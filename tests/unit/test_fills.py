"""Conversion of benchmark frames to fillings frames."""

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.probes.jobs.forms import fill_items_of
from kgprobe.probes.jobs.methods.fill import fill_frame
from kgprobe.probes.jobs.score import tables
from kgprobe.probes.scoring.fill.predict import FillItem
from kgprobe.settings.probes import Fill
from tests.unit.tiny_models import tiny

ITEM = {"group": "g", "role": "test", "subject_id": "", "row": 0, "meta": ""}
ITEMS = pl.DataFrame(
    [
        {"item": "b", "relation": "P36", "subject": "Italy", "candidates": "c", "answers": [1]},
        {"item": "a", "relation": "P36", "subject": "France", "candidates": "c", "answers": [2, 0]},
    ]
).with_columns(pl.lit(v).alias(k) for k, v in ITEM.items())
CANDIDATES = pl.DataFrame(
    {"set": ["c"] * 3, "index": [0, 1, 2], "id": ["x", "y", "z"],
     "label": ["Paris", "Rome", "Burkina Faso"]}
)  # fmt: skip
PROMPTS = pl.DataFrame(
    {"prompt": ["p0", "p1"], "relation": ["P36"] * 2, "index": [0, 3], "kind": ["manual"] * 2,
     "text": ["The capital of [X] is [Y] .", "[Y] is the capital of [X] ."]}
)  # fmt: skip


def test_items_become_fill_items_with_answers_in_order():
    result = fill_items_of(tables(ITEMS, CANDIDATES, PROMPTS), ITEMS)
    assert result[0] == FillItem(
        "a", 0, "The capital of [X] is [Y] .", "France", ("Burkina Faso", "Paris")
    )
    assert [(b.item, b.template) for b in result] == [("a", 0), ("a", 3), ("b", 0), ("b", 3)]
    with pytest.raises(ValueError, match="no template for 1 relations: P36"):
        fill_items_of(tables(ITEMS, CANDIDATES, PROMPTS.clear()), ITEMS)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_frames_match_their_schemas_and_are_reproducible(name, tmp_path):
    loaded = tiny(name, bos="forced" if name == "gpt2" else "", double=False)
    files = []
    for run, items in enumerate((ITEMS, ITEMS.reverse())):
        fills, golds, record = fill_frame(loaded, items, CANDIDATES, PROMPTS, Fill(k=4))
        schema.write(fills, schema.FILLS, tmp_path / f"{run}.parquet", record)
        schema.write(golds, schema.FILL_GOLDS, tmp_path / f"{run}g.parquet", record)
        files.append([(tmp_path / f"{run}{g}.parquet").read_bytes() for g in ("", "g")])
    assert files[0] == files[1]
    templates = {0} if name == "gpt2" else {0, 3}
    assert set(fills["template"]) == set(golds["template"]) == templates
    if name == "gpt2":
        assert record["left_out"] == {"mask slot not at the end": 2}
    assert set(fills.filter(pl.col("position") < 0)["token"]) == {-1}
    assert fills["logprob"].is_finite().all()
    assert (golds["best"] <= golds["worst"]).all()
    assert set(golds.filter(pl.col("item") == "a")["gold"]) == {0, 1}
