"""What a model is asked so that nothing is known: no subject, and weights drawn anew."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.jobs.kept import Kept
from kgprobe.probes.jobs.methods import contentless, twin
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.models.reinitialised import reinitialised
from kgprobe.settings import Api
from kgprobe.tables.answers import without_subject
from tests.unit.study_frames import benchmark
from tests.unit.tiny_models import tiny

GOLDS = {"P1": (["Rome", "Paris"], ["Rome", "Paris"] * 3), "P2": (["a", "one", "Africa"], ["a"])}


@pytest.fixture(params=["gpt2", "bert"])
def asked(request, tmp_path):
    """(frames, loaded model, Part) of a small benchmark."""
    made, loaded = benchmark(GOLDS), tiny(request.param)
    paths = {}
    contracts = {"items": schema.ITEMS, "candidates": schema.CANDIDATES, "prompts": schema.PROMPTS}
    for name, contract in contracts.items():
        paths[name] = str(tmp_path / f"{name}.parquet")
        schema.write(made[name], contract, paths[name], {})
    paths["questions"] = paths.pop("items")

    def part(**settings: object) -> Part:
        told = {"method": "sentence", **settings}
        spec = loaded.spec
        return Part(
            "", "b", "templates", paths, {}, told, spec, lambda _: loaded, Api(), Kept(Path())
        )

    return made, loaded, part


def scored(loaded, items, made, prompts=None):
    prompts = made["prompts"] if prompts is None else prompts
    found, _ = score_frame(
        loaded.spec, items, made["candidates"], prompts, "sentence", progress, load=lambda _: loaded
    )
    return found


def test_without_its_subject_an_item_has_the_mean_of_the_sentences_of_subjects_that_say_nothing(
    asked,
):
    made, loaded, part = asked
    frames, _ = contentless.answers(part(method="contentless"), Path())
    # 3 subjects x 3 templates x 2 options, whatever the number of items; P2 has one subject
    assert frames["contentless"].height == 3 * 3 * 2
    found = without_subject(made["items"], frames["contentless"])
    told = {row[:3]: row[3] for row in found.rows()}
    slow: dict[tuple[str, int, int], float] = {}
    for word in ("it", "this", "something"):
        items = made["items"].filter(relation="P1").with_columns(subject=pl.lit(word))
        for item, template, option, value in (
            scored(loaded, items, made).select("item", "template", "candidate", "sum").rows()
        ):
            key = item, template, option
            slow[key] = slow.get(key, 0.0) + value / 3
    assert told.keys() == slow.keys()
    assert len(told) == 3 * 6 * 2
    for key, value in slow.items():
        assert told[key] == pytest.approx(value, abs=1e-3), key


def test_a_twin_answers_a_part_of_the_items_under_the_first_template(asked):
    made, loaded, part = asked
    frames, record = twin.answers(part(items=3, seed=0), Path())
    found = frames["scores"]
    assert record["model"] == f"{loaded.spec.model}+random-all-0"
    assert found["item"].n_unique() == 3
    assert set(found["template"]) == {0}
    assert set(found["item"].str.split("/").list.first()) == {"P1", "P2"}
    items = made["items"].join(found, on="item", how="semi")
    first = made["prompts"].filter(index=0)
    same = scored(reinitialised(loaded, "all", 0), items, made, first)
    key = ["item", "template", "candidate"]
    both = found.join(same, on=key, suffix="_same")
    assert both.height == found.height > 0
    assert both["sum"].to_list() == pytest.approx(both["sum_same"].to_list(), abs=1e-4)
    own = found.join(scored(loaded, items, made, first), on=key, suffix="_own")
    assert (own["sum"] - own["sum_own"]).abs().max() > 1e-3
