"""Method reason: which rule questions models get, and the resulting premise settings."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.probes.jobs.methods import reason as method
from kgprobe.probes.jobs.ontoprobe import reason, soft
from kgprobe.probes.models.load import load_model
from kgprobe.settings.probes import CausalRules, Soft
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import make, reasoning
from tests.unit import soft_frames as frames
from tests.unit.test_reasoning import PLAN, SWITCHES, saved

PROBE = Probe("onto_world", "templates", "reason", "m", "masked")


def test_rows_of_a_rule_are_limited_by_hash():
    def taken(items, seed):
        return method.sampled(items, 2, seed).filter(role="test").sort("item")

    few = taken(frames.reasoning(), 0)
    assert few.group_by("relation").len()["len"].to_list() == [2] * 6
    assert taken(frames.reasoning().reverse(), 0).equals(few)
    assert any(not taken(frames.reasoning(), seed).equals(few) for seed in range(1, 5))
    assert method.sampled(frames.reasoning(), None, 0).equals(frames.reasoning().sort("item"))


@pytest.mark.parametrize(("name", "schemes", "pairs"), [("gpt2", 1, 1), ("bert", 4, 2)])
def test_causal_models_reason_by_one_scheme_and_pair_on_some_rows(tmp_path, name, schemes, pairs):
    spec = saved(tmp_path, name)
    if name == "bert":
        soft.train(spec, frames.items(), frames.candidates(), SWITCHES, PLAN, tmp_path / "p")
    settings = {
        "soft": asdict(Soft(seeds=1, epochs=2, losses=("bce",), masks=("multi",),
                            poolings=("mean",), causal=CausalRules(rows=2))),
        "switches": asdict(SWITCHES), "seed": 0,
    }  # fmt: skip
    given = {"questions": frames.reasoning(), "candidates": frames.candidates()}
    part = SimpleNamespace(
        spec=spec, settings=settings, load=load_model, read=lambda name, _: given[name],
        input={"prompts": str(tmp_path / "p") if name == "bert" else ""}, work=tmp_path / "work",
    )  # fmt: skip
    found, record = method.answers(part)
    for made, contract in method.OUTPUT.items():
        schema.check(found[made], contract)
    assert found["ranks"]["scheme"].n_unique() == schemes
    assert found["ranks"]["pair"].n_unique() == pairs
    rows = 6 * (2 if name == "gpt2" else 3)
    assert found["ranks"].filter(scheme="manual+manual")["item"].n_unique() == rows
    assert record["pseudoword_pairs"] == pairs
    if name == "bert":
        return
    chosen = method.sampled(frames.reasoning(), 2, 0).filter(role="test")["item"].to_list()
    assert sorted(found["ranks"]["item"].unique()) == sorted(chosen)
    assert found["ranks"].equals(method.answers(part)[0]["ranks"])
    settings["soft"]["rule_rows"] = 1
    one = method.sampled(frames.reasoning(), 1, 0).filter(role="test")["item"].to_list()
    assert set(method.answers(part)[0]["ranks"]["item"]) == set(one)


def test_a_causal_model_needs_no_memorizing_answers(tmp_path):
    """Without answers to the memorizing tasks, its first premises are explicit or absent."""
    items = frames.reasoning().filter(role="test")["item"].to_list()
    keys = ("scheme", "p1", "p2", "pair")
    ranked = pl.DataFrame(
        [(i, "manual+manual", *form, 0, 1, 1, 1) for i in items for form in reason.FORMS],
        schema=["item", *keys, "best", "worst", "in_order"], orient="row",
    )  # fmt: skip
    tests = pl.DataFrame([(i, "manual", 0, 1, 1, 1) for i in items],
                         schema=["item", "kind", "pair", "best", "worst", "in_order"],
                         orient="row")  # fmt: skip
    schema.write(frames.reasoning(), schema.ITEMS, tmp_path / "reasoning.parquet")
    files = {"ranks": ranked, "tests": tests}
    for name, frame in files.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    paths = str(tmp_path / "ranks.parquet"), str(tmp_path / "tests.parquet")
    probe = replace(PROBE, kind="causal")
    study = make.OntoProbeStudy({"onto_world": tmp_path}, SWITCHES)
    made = list(make.estimate_reasoning(study, {probe: paths}, {}))
    told_of = {n.setting["premise"] for n in made if n.metric == "MRR"}
    assert told_of == {"P1 EX, P2 EX", "P1 EX, P2 IM", "P1 EX, P2 NO"}
    assert {n.setting["premise"] for n in made if n.metric == reasoning.CUT} == {"P2"}
    with pytest.raises(ValueError, match="no premise of reasoning can be classified"):
        list(make.estimate_reasoning(study, {PROBE: paths}, {}))
