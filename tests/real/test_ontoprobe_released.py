"""The released OntoProbe: rows follow from its ontology; the baseline equals the printed one."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from kgprobe.benchmarks.ontoprobe import build, choices, modes, reasoning, released
from kgprobe.experiments import read_table
from kgprobe.probes.baselines import frequency
from kgprobe.tables.ontoprobe import choices as choice_tables

pytestmark = pytest.mark.real
RELEASED = modes.resolve("released", {"item_limit": "none"})
COUNTS = {"TP": 8859, "SCO": 721, "SPO": 59, "DM": 50, "RG": 48}


@pytest.fixture(scope="module")
def taken(real_data):
    return released.take(real_data / "ontoprobe", RELEASED)


@pytest.fixture(scope="module")
def sets(taken):
    return build.build(taken, RELEASED, "onto_released")


def lines(real_data, name):
    path = real_data / "ontoprobe" / "memorizing" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_splits_and_candidates(sets):
    items = sets.items
    assert dict(items.group_by("relation").len().rows()) == COUNTS
    for role in ("train", "dev"):
        assert set(items.filter(role=role).group_by("relation").len()["len"]) == {10}
    sizes = dict(sets.candidates.group_by("set").len().rows())
    assert sizes == {"class": 783, "property": 82, "pattern": 82, "property+": 84, "pattern+": 83}
    repeated = pl.col("meta").str.contains('"repeat"')
    assert items.filter(repeated).height == 70
    assert items.filter(relation="TP", role="test").filter(~repeated).height == 8769
    finest = items.filter(relation="TP", role="test")["answers"].list.first()
    assert finest.n_unique() == 453


def test_golds_per_item(sets):
    counts = sets.items.with_columns(n=pl.col("answers").list.len()).group_by("relation", "n").len()
    found = {t: dict(counts.filter(relation=t).select("n", "len").sort("n").rows()) for t in COUNTS}
    assert found["TP"] == {2: 1777, 3: 1975, 4: 2073, 5: 1005, 6: 1551, 7: 393, 8: 85}
    assert found["SCO"] == {1: 149, 2: 191, 3: 154, 4: 76, 5: 111, 6: 34, 7: 6}
    assert found["SPO"] == {1: 29, 2: 17, 3: 9, 4: 3, 5: 1}
    assert found["DM"] == {1: 50}
    assert found["RG"] == {1: 48}


def test_every_row_of_type_and_subclass_follows_from_the_class_file(taken, real_data):
    derived_types: dict[tuple, int] = {}
    derived_chains = {}
    for own in taken.concepts.classes:
        for instance in own.instances:
            key = (instance, (own.label, *own.chain))
            derived_types[key] = derived_types.get(key, 0) + 1
        if own.chain:
            derived_chains[own.label] = own.chain
    types = [(r["uuu"], tuple(r["xxx"])) for r in lines(real_data, "type")]
    assert set(types) == set(derived_types)
    assert len(set(types)) == 8789
    chains = {r["uuu"]: tuple(r["xxx"]) for r in lines(real_data, "subClassOf")}
    assert chains == derived_chains
    assert len(chains) == 721
    sizes = [len(c.instances) for c in taken.concepts.classes]
    assert sizes.count(0) == 330
    assert sizes.count(20) == 433
    assert sum(0 < n < 20 for n in sizes) == 20
    assert sum(sizes) == 8789
    assert max(len(c.chain) for c in taken.concepts.classes) == 7


def test_golds_of_domain_and_range_equal_the_property_files(taken):
    ends = {p.label: p for p in taken.concepts.properties}
    rows = [row for row in taken.rows if row.task in ("DM", "RG")]
    assert len(rows) == 98
    for row in rows:
        stated = ends[row.subject].domain if row.task == "DM" else ends[row.subject].range
        assert row.golds[0].casefold() == (stated or "").casefold(), row


def test_repairing_the_rule_changes_one_clause(taken, sets):
    other = build.build(taken, replace(RELEASED, phrasing="repaired"), "x").items
    both = sets.items.join(other, on="item")
    changed = both.filter(pl.col("subject") != pl.col("subject_right"))["item"].to_list()
    assert changed == ["DM-5"]


def test_lexical_leaks(sets):
    for task, fraction in (("TP", 13.6), ("SCO", 15.3)):
        own = sets.items.filter(relation=task, role="test")
        leaks = own["meta"].str.contains('"leak": true').mean()
        assert round(100 * leaks, 1) == fraction


def test_the_frequency_baseline_is_the_printed_one(sets):
    table = read_table("resources/published/ontoprobe_memorizing.tsv")
    printed = {
        (r["task"], r["metric"]): float(r["value"])
        for r in table
        if r["model"] == "frequency-baseline" and r["value"]
    }
    for task in COUNTS:
        own = sets.items.filter(relation=task).sort("row")
        size = sets.candidates.filter(set=own["candidates"][0]).height
        train = own.filter(role="train")["answers"].to_list()
        ranked = frequency.rank(train, own.filter(role="test")["answers"].to_list(), size)
        for k in (1, 5):
            assert round(100 * ranked.hits[k].mean(), 1) == printed[task, f"R@{k}"]
        assert 100 * ranked.mrr.mean() == pytest.approx(printed[task, "MRR"], abs=0.5)
        if (task, "MRRa") in printed:
            assert 100 * ranked.mrra.mean() == pytest.approx(printed[task, "MRRa"], abs=0.5)


def test_a_random_order_has_the_value_expected_from_released_golds(sets):
    chance = {"TP": (0.51, 2.74), "SCO": (0.37, 2.12), "SPO": (2.22, 9.01), "DM": (0.13, 0.92),
              "RG": (0.13, 0.92)}  # fmt: skip
    for task, expected in chance.items():
        own = sets.items.filter(relation=task)
        size = sets.candidates.filter(set=own["candidates"][0]).height
        golds = own.filter(role="test")["answers"].list.len().to_list()
        found = frequency.at_random(golds, size)
        assert (round(100 * found["R@1"], 2), round(100 * found["MRR"], 2)) == expected


def test_ceilings(sets):
    for task, ceiling in (("TP", 43.98), ("SCO", 59.44), ("SPO", 77.69), ("DM", 100.0)):
        golds = sets.items.filter(relation=task, role="test")["answers"].list.len().to_numpy()
        assert round(float(np.mean(200 / (golds + 1))), 2) == ceiling


def test_reasoning_rows_and_missing_ones(taken, sets):
    rules = reasoning.build(taken, sets.items, sets.candidates, RELEASED)
    tests = dict(rules.filter(role="test").group_by("relation").len().rows())
    assert tests == {
        "rdfs2": 30, "rdfs3": 28, "rdfs5": 39, "rdfs7": 39, "rdfs9": 701, "rdfs11": 701,
    }  # fmt: skip
    own = reasoning.build(taken, sets.items, sets.candidates, replace(RELEASED, premise_test="own"))
    missing = [
        frame.filter(pl.col("meta").str.contains('"missing": true'))["item"].sort().to_list()
        for frame in (rules, own)
    ]
    assert missing == [["rdfs7-47"], ["rdfs5-37", "rdfs5-55", "rdfs7-47"]]
    twins = rules.filter(pl.col("meta").str.contains('"twin"'))["item"].sort().to_list()
    assert twins == ["rdfs5-47", "rdfs7-47"]


def test_the_shipped_split_matches_our_questions(taken, sets, real_data):
    rules = reasoning.build(taken, sets.items, sets.candidates, RELEASED)
    items = sets.items.with_columns(
        role=pl.when((pl.col("role") == "test") & (pl.col("row") >= 520))
        .then(pl.lit("later"))
        .otherwise("role")
    )
    asked = choices.memorizing(
        items, sets.candidates, sets.prompts, seed=0, negatives=RELEASED.negatives
    )
    split = choice_tables.shipped(real_data / "ontoprobe" / "gpt" / "reasoning")
    for phrasing in ("released", "default"):
        built = choices.reasoning(rules, asked, items, phrasing=phrasing)
        questions = pl.concat([asked, built])
        answers = questions.select("item", chosen="gold", rule=pl.lit("x"))
        rows = choice_tables.hits(questions, answers)
        found = choice_tables.premises(rows, split).group_by("task", "setting").len()
        counts = {(t, s): n for t, s, n in found.rows()}
        for rule, sizes in choice_tables.RELEASED.items():
            own = [counts.get((rule, setting), 0) for setting in choice_tables.PREMISES]
            assert own == list(sizes), (phrasing, rule)


def test_released_questions_are_those_of_the_released_files(taken, sets, real_data):
    """Four questions about domains differ: their clauses are shorter in the released files."""
    rules = reasoning.build(taken, sets.items, sets.candidates, RELEASED)
    how = {"seed": 0, "negatives": "released", "phrasing": "released"}
    asked = choices.memorizing(sets.items, sets.candidates, sets.prompts, **how)
    built = choices.reasoning(
        rules, asked, sets.items, phrasing="released", candidates=sets.candidates
    )
    files = {("memorizing", name): asked.filter(task=task) for task, name in released.FILES.items()}
    files |= {
        ("reasoning", f"{rule}-22"): built.filter(task=rule, premise="EX") for rule in choices.RULES
    }
    for (folder, name), rows in files.items():
        path = real_data / "ontoprobe" / "gpt" / folder / f"{name}.jsonl"
        prompts = [json.loads(line)["prompt"] for line in path.read_text().splitlines()]
        theirs = [prompt.partition(" (a) ")[0] for prompt in prompts]
        ours = rows.sort("row")["question"].to_list()
        assert len(ours) == len(theirs)
        differing = sum(one != other for one, other in zip(ours, theirs, strict=True))
        assert differing == (4 if name == "domain" else 0), name
