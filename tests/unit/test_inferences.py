"""Taught inference: what is taught and asked in each arm, and the numbers by hand."""

import json
from typing import get_args

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks import inferred
from kgprobe.benchmarks.inferred import CONCLUSION, PREMISE
from kgprobe.benchmarks.invented import (
    ARMS,
    CONTRADICTED,
    PARTS,
    PHENOMENA,
    RULES,
    UNTAUGHT,
    WHOLE,
    WorldError,
)
from kgprobe.settings import Inferences, Phenomenon
from kgprobe.tables import inferences
from kgprobe.tables.results import frame

EXAMPLES = 12


@pytest.fixture(scope="module")
def world():
    return inferred.build(PHENOMENA, EXAMPLES, 0)


def asked(world):
    """Every question with its options and what is right, as words."""
    labels = dict(world.candidates.sort("index").group_by("set").agg("label").rows())
    for row in world.items.rows(named=True):
        options, meta = labels[row["candidates"]], json.loads(row["meta"])
        gold = (row["relation"], row["subject"], options[row["answers"][0]])
        instead = options[meta["instead"]] if "instead" in meta else None
        yield row["group"], row["role"], meta["part"], gold, options, instead


def test_settings_know_the_phenomena():
    assert get_args(Phenomenon) == PHENOMENA
    with pytest.raises(ValueError, match="width 66 is no multiple of the 4 heads; write 64"):
        Inferences(widths=(66,))


def test_arms_are_asked_what_was_taught_of_them(world):
    taught = set(world.taught.filter("taught").select("relation", "subject", "object").rows())
    counted = {}
    for group, arm, part, gold, options, instead in asked(world):
        counted[group, arm, part] = counted.get((group, arm, part), 0) + 1
        is_taught = gold in taught
        assert is_taught == (arm == WHOLE or part == PREMISE), gold
        assert (instead is not None) == (arm == CONTRADICTED)
        if instead:
            assert (*gold[:2], instead) in taught
        # nobody but the gold is right, and only the contradiction was taught besides
        others = {(*gold[:2], own) for own in options} - {gold, (*gold[:2], instead)}
        assert not others & taught
        assert 2 <= len(options) <= inferred.OPTIONS
        assert len(set(options)) == len(options)
    for group in PHENOMENA:
        for arm in ARMS if group in RULES else (WHOLE, UNTAUGHT):
            assert counted[group, arm, CONCLUSION] == EXAMPLES
        assert ((group, PARTS, PREMISE) in counted) == (group in RULES)
    every = set(world.taught.select("relation", "subject", "object").rows())
    assert {gold for _, _, _, gold, _, _ in asked(world)} <= every


def test_nothing_is_taught_of_untaught_subjects(world):
    known = world.taught.filter("taught")
    named = {*known["subject"], *known["object"]}
    for _, arm, _, (_, subject, _), _, _ in asked(world):
        assert (subject in named) == (arm != UNTAUGHT)


def test_no_name_stands_in_two_phenomena(world):
    named = {group: set() for group in PHENOMENA}
    for group, _, _, (_, subject, own), options, _ in asked(world):
        named[group] |= {subject, own, *options}
    assert len(set().union(*named.values())) == sum(map(len, named.values()))


def test_untaught_conclusions_are_equally_common(world):
    """So that knowing which object is common helps with none of them."""
    golds = {}
    for group, arm, part, gold, _, _ in asked(world):
        if arm == UNTAUGHT and part == CONCLUSION:
            golds.setdefault(group, []).append(gold[2])
    for own in golds.values():
        counts = np.unique(own, return_counts=True)[1]
        assert counts.max() - counts.min() <= 1


def test_bad_worlds_are_refused():
    with pytest.raises(WorldError, match="no phenomenon to teach"):
        inferred.build([], 5, 0)
    with pytest.raises(WorldError, match="unknown phenomenon 'transitivity'"):
        inferred.build(["transitivity"], 5, 0)


def answers(items, hits, said=None, count=8):
    """Answered by a model that is right where `hits` says so."""
    sets = items.select(set="candidates").join(pl.DataFrame({"index": list(range(5))}), how="cross")
    instead = items["meta"].str.json_path_match("$.instead").cast(pl.Int32).fill_null(0)
    own = pl.Series(said or [0] * len(hits), dtype=pl.Int32)
    winner = pl.select(pl.when(own == 1).then(instead).otherwise(99)).to_series()
    judged = pl.DataFrame({"item": items["item"], "hit": hits, "winner": winner})
    return inferences.answered(f"control-inferred-causal-128-{count}-0", items, sets, judged)


@pytest.fixture
def symmetric():
    return inferred.build(["symmetry"], EXAMPLES, 0).items


def right(items, rates):
    """Hits: of each arm and part the first share of the cases."""
    seen, hits = {}, []
    for role, meta in items.select("role", "meta").rows():
        key = role, json.loads(meta)["part"]
        place = seen[key] = seen.get(key, -1) + 1
        hits.append(float(place < rates[key] * EXAMPLES))
    return hits


FULL = {(WHOLE, CONCLUSION): 1, (PARTS, PREMISE): 1, (UNTAUGHT, CONCLUSION): 0,
        (CONTRADICTED, CONCLUSION): 0}  # fmt: skip


def told(made, **where):
    own = made.filter(**where)
    assert own.height == 1
    return own.row(0, named=True)


@pytest.mark.parametrize(("parts", "infers"), [(1, 1), (0.75, 1), (0, 0)])
def test_the_numbers_of_an_arm_by_hand(symmetric, parts, infers):
    rates = {**FULL, (PARTS, CONCLUSION): parts}
    contradicted = [int(role == CONTRADICTED) for role in symmetric["role"]]
    every = [answers(symmetric, right(symmetric, rates), contradicted) for _ in range(3)]
    found = inferences.numbers(every, 0)
    assert list(found) == ["attributes"]
    made = frame("attributes", found["attributes"])
    schema.check(made, schema.RESULTS)
    for arm, value in ((WHOLE, 100), (PARTS, 100 * parts), (UNTAUGHT, 0), (CONTRADICTED, 0)):
        row = told(made, metric="accuracy", slice=arm)
        assert (row["value"], row["n"]) == (value, EXAMPLES)
        assert row["low"] <= value <= row["high"]
        # all right or all wrong: Wilson's of the cases, not of cases times models
        assert row["interval"] == ("wilson" if value in (0, 100) else "cluster bootstrap")
    assert told(made, metric="parts known")["value"] == 100
    assert told(made, metric="contradiction said")["value"] == 100
    assert told(made, metric="chance")["value"] == pytest.approx(20)
    assert told(made, metric="infers")["value"] == infers
    shown = inferences.chapter(made)
    assert ("No control model infers" in shown.verdict) == (not infers)
    assert shown.is_met
    assert shown.grids[0].rows


def test_an_interval_holds_both_cases_and_seeds(symmetric):
    """Models that differ widen it; a slow draw of both gives the same width."""
    rates = [{**FULL, (PARTS, CONCLUSION): share} for share in (0.25, 0.5, 0.75)]
    every = [answers(symmetric, right(symmetric, own)) for own in rates]
    made = frame("attributes", inferences.numbers(every, 0)["attributes"])
    row = told(made, metric="accuracy", slice=PARTS)
    assert row["value"] == pytest.approx(50)
    hits = np.array([[float(i < own[PARTS, CONCLUSION] * EXAMPLES) for i in range(EXAMPLES)]
                     for own in rates])  # fmt: skip
    rng, slow = np.random.default_rng(1), []
    for _ in range(4000):
        models, cases = rng.integers(0, 3, 3), rng.integers(0, EXAMPLES, EXAMPLES)
        slow.append(100 * hits[models][:, cases].mean())
    low, high = np.quantile(slow, [0.025, 0.975])
    assert row["low"] == pytest.approx(low, abs=4)
    assert row["high"] == pytest.approx(high, abs=4)
    same = [answers(symmetric, right(symmetric, rates[1])) for _ in range(3)]
    narrow = told(
        frame("attributes", inferences.numbers(same, 0)["attributes"]),
        metric="accuracy", slice=PARTS,
    )  # fmt: skip
    assert narrow["high"] - narrow["low"] < row["high"] - row["low"]


def test_exposures_are_told_apart_and_low_recall_is_said(symmetric):
    half = {**FULL, (WHOLE, CONCLUSION): 0.5, (PARTS, CONCLUSION): 0}
    whole = {**half, (WHOLE, CONCLUSION): 1}

    def run(few, many):
        pairs = ((few, 4), (many, 16))
        every = [answers(symmetric, right(symmetric, own), count=n) for own, n in pairs]
        return frame("attributes", inferences.numbers(every, 0)["attributes"])

    # the learning curve may begin low
    assert inferences.chapter(run(half, whole)).is_met
    made = run(whole, half)
    assert made.filter(metric="accuracy", slice=WHOLE).height == 2
    shown = inferences.chapter(made)
    assert not shown.is_met
    assert "but in symmetry" in shown.verdict


def test_models_that_were_asked_other_questions_are_refused(symmetric):
    rates = {**FULL, (PARTS, CONCLUSION): 0}
    one = answers(symmetric, right(symmetric, rates))
    few = symmetric.head(20)
    other = answers(few, right(few, rates))
    with pytest.raises(
        ValueError, match=r"symmetry, .*: the models were asked different questions"
    ):
        inferences.numbers([one, other], 0)
