"""Slices of a benchmark and the baselines of every probe, against hand counts and slow loops."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.sampling import sample_evenly
from kgprobe.tables import slices
from kgprobe.tables.answers import judge, without_subject
from kgprobe.tables.baselines import files
from kgprobe.tables.bear import figures, make, section, views
from kgprobe.tables.report import headline
from kgprobe.tables.scored import SUBJECT, WEIGHTS
from kgprobe.tables.study import BaselineAnswers, relations_of
from kgprobe.templates import NO_SUBJECTS
from tests.unit.study_frames import (
    benchmark,
    guesses,
    number,
    of_rows,
    p_by_signs,
    probe,
    rates_by_hand,
    results,
    scores,
    study,
    write_benchmark,
)

BY_NAME = {one.name: one for one in slices.SLICES}
LABELS = ["Rome", "Bonn", "Paris", "Amsterdam"]
MODELS = {
    name: {"kind": kind, "source": source, "dtype": "float32", "bos": "-"}
    for name, kind, source in (("a", "masked", "hub:a"), ("b", "masked", "control:masked"))
}


def frames(sizes=(40, 24)):
    """Two relations of four options; sitelinks 0, 3, 6 ... of subjects, unknown for the last."""
    made = benchmark(
        {
            f"P{i}": (LABELS, [LABELS[(j * j + i) % 4] for j in range(size)])
            for i, size in enumerate(sizes)
        }
    )
    links = [json.dumps({"sitelinks": 3 * i}) for i in range(made["items"].height - 1)]
    return {**made, "items": made["items"].with_columns(meta=pl.Series([*links, "{}"]))}


def two(made):
    """Return a study of two probes."""
    answered = [(probe("a"), guesses(made, 0.5, 1)), (probe("b"), guesses(made, 0.3, 2))]
    return study(made, answered)


def test_bins_have_fixed_edges():
    links = BY_NAME["sitelinks"]
    expected = {0: "0", 1: "1-4", 4: "1-4", 5: "5-19", 19: "5-19", 20: "20-99", 99: "20-99"}
    expected |= {100: "100+", 10**6: "100+", None: "unknown"}
    assert {value: links.bin(value) for value in expected} == expected
    assert links.bins == ["0", "1-4", "5-19", "20-99", "100+", "unknown"]
    assert [BY_NAME["options"].bin(n) for n in (2, 4, 5, 9, 10, 100)] == [
        "2-4", "2-4", "5-9", "5-9", "10-19", "100+",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="options 1: below the first edge, 2"):
        BY_NAME["options"].bin(1)


def test_items_without_a_wrong_option_are_in_no_bin():
    made = benchmark({"P1": (LABELS, LABELS), "P2": (["Rome"], ["Rome"])})
    assert slices.items_of(**made, part="options: 2-4")["relation"].to_list() == ["P1"] * 4


def test_every_item_is_in_one_bin_of_each_slice():
    made = frames()
    one = two(made)
    names = one.ordered["item"].to_list()
    trained_on = dict.fromkeys(names[:20], True) | dict.fromkeys(names[30:], False)
    found = {s.name: bins for s, bins in slices.bins_of(replace(one, trained_on=trained_on))}
    assert set(found) == {"sitelinks", "options", "frequency", "length", "cardinality", "facts"}
    for bins in found.values():
        assert (sum(b.weights for b in bins) == 1).all()
    sizes = {b.name: int(b.weights.sum()) for bins in found.values() for b in bins}
    links = [3 * i for i in range(63)]
    assert sizes["sitelinks: 0"] == 1
    assert sizes["sitelinks: 1-4"] == 1
    assert sizes["sitelinks: 5-19"] == sum(5 <= n < 20 for n in links) == 5
    assert sizes["sitelinks: 20-99"] == sum(20 <= n < 100 for n in links)
    assert sizes["sitelinks: unknown"] == 1
    assert sizes["options: 2-4"] == 64
    golds = [(LABELS[row[0]]) for row in made["items"]["answers"]]
    often = Counter(golds)
    for low, high, name in ((5, 9, "5-9"), (10, 19, "10-19"), (20, 49, "20-49"), (50, 99, "50+")):
        n = sum(low <= often[gold] <= high for gold in golds)
        assert sizes.get(f"frequency: {name}", 0) == n
    assert sum(often.values()) == 64
    assert len(often) > 1
    assert sizes["length: 1-4"] == sum(gold in ("Rome", "Bonn") for gold in golds)
    assert (sizes["facts: trained-on"], sizes["facts: neither"]) == (20, 10)
    ordered = made["items"].sort("item")
    by_hand = [
        json.loads(meta).get("sitelinks", None) is not None and json.loads(meta)["sitelinks"] >= 100
        for meta in ordered["meta"]
    ]
    (many,) = [b.weights for b in found["sitelinks"] if b.name == "sitelinks: 100+"]
    assert (many == by_hand).all()
    assert many.any()


def test_statement_counts_replace_unknown_sitelinks_only():
    made = frames()
    items = made["items"].with_columns(meta=pl.lit('{"statements": 7}'))
    found = {s.name for s, _ in slices.bins_of(two({**made, "items": items}))}
    assert "statements" in found
    assert "sitelinks" not in found
    items = items.with_columns(meta=pl.lit("{}"))
    own = results(two({**made, "items": items}))
    unknown = ["popularity of the subject", "domain", "what was trained on"]
    assert slices.unknown_slices(own) == unknown
    (note,) = [one for one in section.notes(own, MODELS) if "Not known for these items" in one]
    assert ", ".join(unknown) in note
    assert "popularity of the subject" not in slices.unknown_slices(results(two(made)))


def bins_by_hand(made):
    """Map each item to its bin of sitelinks, by comparisons."""
    found = {}
    for item, meta in made["items"].select("item", "meta").rows():
        links = json.loads(meta).get("sitelinks")
        name = "unknown"
        for least, label in ((0, "0"), (1, "1-4"), (5, "5-19"), (20, "20-99"), (100, "100+")):
            if links is not None and links >= least:
                name = label
        found[item] = name
    return found


def test_accuracies_differences_and_tests_by_slow_loops():
    made = frames()
    own = results(two(made))
    one, other = (rates_by_hand(made, guesses(made, s, n)) for s, n in ((0.5, 1), (0.3, 2)))
    where = bins_by_hand(made)
    tests = {}
    for name in ("0", "1-4", "5-19", "20-99", "100+", "unknown"):
        members = [item for item in where if where[item] == name]
        assert members
        row = number(own, model="a", slice=f"sitelinks: {name}")
        assert row["n"] == len(members)
        assert row["value"] == pytest.approx(100 * sum(one[i] for i in members) / len(members))
        assert row["low"] <= row["value"] <= row["high"]
        chance = number(own, model="random", slice=f"sitelinks: {name}")
        assert (chance["value"], chance["n"]) == (25.0, len(members))
        differences = [one[i] - other[i] for i in members]
        row = number(own, model="a", slice=f"sitelinks: {name}", instead="b")
        assert row["value"] == pytest.approx(100 * sum(differences) / len(differences))
        error = math.sqrt(sum(difference**2 for difference in differences)) / len(differences)
        tests[name] = p_by_signs(differences)
        least = number(own, "detectable difference", model="a", slice=row["slice"], instead="b")
        if error:
            assert least["value"] == pytest.approx(100 * (1.959964 + 0.841621) * error, rel=1e-5)
        else:
            assert least["value"] is None
    # Holm: from the smallest p on, times the number of tests left, never below an earlier one
    reached = 0.0
    for rank, name in enumerate(sorted(tests, key=lambda n: tests[n])):
        reached = max(reached, min(1.0, (len(tests) - rank) * tests[name]))
        row = number(own, "p after Holm", model="a", slice=f"sitelinks: {name}", instead="b")
        assert row["value"] == pytest.approx(reached, abs=1e-9)
    assert any(p < 1 for p in tests.values())


def test_one_item_is_never_significant():
    """One probe has everything right in two bins, so the spread over resamples would be zero."""
    made = benchmark({"P1": (["Rome", "Amsterdam"], ["Rome", "Amsterdam"])})
    right = dict.fromkeys(made["items"]["item"], True)
    answered = [
        (probe("a"), guesses(made, 1, 1, right=right)),
        (probe("b"), guesses(made, 0, 1, right=dict.fromkeys(right, False))),
    ]
    gold = dict(made["items"].select("item", "answers").rows())
    for (item, _), values in answered[1][1].items():
        values[gold[item][0]] = min(values) - 1
    own = results(study(made, answered))
    row = number(own, "p after Holm", model="a", slice="length: 1-4", instead="b")
    assert row["value"] == 1.0
    assert number(own, model="a", slice="length: 1-4", instead="b")["value"] == 100.0
    least = number(own, "detectable difference", model="a", slice="length: 1-4", instead="b")
    assert least["value"] > 100


def test_an_interval_is_that_of_drawing_items_within_their_relation():
    made = frames((200, 100))
    own = results(two(made))
    rates, where = rates_by_hand(made, guesses(made, 0.5, 1)), bins_by_hand(made)
    owners = dict(made["items"].select("item", "relation").rows())
    groups = [[i for i in owners if owners[i] == r] for r in ("P0", "P1")]
    generator, drawn = np.random.default_rng(3), []
    for _ in range(3000):
        chosen = [g[k] for g in groups for k in generator.integers(0, len(g), len(g))]
        inside = [rates[i] for i in chosen if where[i] == "20-99"]
        drawn.append(100 * sum(inside) / len(inside))
    row = number(own, model="a", slice="sitelinks: 20-99")
    assert row["low"] == pytest.approx(np.quantile(drawn, 0.025), abs=2.5)
    assert row["high"] == pytest.approx(np.quantile(drawn, 0.975), abs=2.5)


def with_baselines(made):
    """Two probes, the first with both baselines (the random-init one on ten items)."""
    base = two(made)
    blind = guesses(made, 0.1, 5)
    few = {
        k: v for k, v in guesses(made, 0.2, 6, templates=1).items() if k[0] in ITEMS_OF_RANDOM_INIT
    }
    part = made["items"].filter(pl.col("item").is_in(list(ITEMS_OF_RANDOM_INIT)))
    baselines = [
        BaselineAnswers(0, SUBJECT, judge(scores(blind), made["items"], made["candidates"])),
        BaselineAnswers(0, WEIGHTS, judge(scores(few), part, made["candidates"])),
    ]
    return replace(base, baselines=baselines), blind, few


ITEMS_OF_RANDOM_INIT = {f"P0/Qs{i}" for i in range(10)}


def test_baselines_are_compared_with_the_probe_on_common_items():
    made = frames()
    own_study, blind, few = with_baselines(made)
    own = results(own_study)
    baseline, random_init = rates_by_hand(made, blind), rates_by_hand(made, few)
    row = number(own, model="a", without=SUBJECT)
    assert (row["n"], row["value"]) == (64, pytest.approx(100 * sum(baseline.values()) / 64))
    row = number(own, model="a", without=WEIGHTS)
    assert (row["n"], row["interval"]) == (10, "wilson")
    assert row["value"] == pytest.approx(100 * sum(random_init.values()) / 10)
    row = number(own, model="a", without=WEIGHTS, template=0)
    assert row["value"] == pytest.approx(100 * sum(random_init.values()) / 10)
    # the probe on the same ten items under the same one template
    first = {k: v for k, v in guesses(made, 0.5, 1).items() if k in few}
    assert len(first) == len(few) == 10
    same = rates_by_hand(made, first)
    row = number(own, model="a", instead=f"without {WEIGHTS}")
    gap = sum(same.values()) - sum(random_init.values())
    assert row["value"] == pytest.approx(100 * gap / 10)
    where = bins_by_hand(made)
    members = [i for i in where if where[i] == "5-19"]
    row = number(own, model="a", slice="sitelinks: 5-19", without=SUBJECT)
    assert row["value"] == pytest.approx(100 * sum(baseline[i] for i in members) / len(members))
    members = [i for i in members if i in random_init]
    row = number(own, model="a", slice="sitelinks: 5-19", without=WEIGHTS)
    assert row["n"] == len(members) > 0
    assert row["value"] == pytest.approx(100 * sum(random_init[i] for i in members) / len(members))
    # no bin without a scored item
    assert not own.filter(slice="sitelinks: unknown", without=WEIGHTS, instead="").height


def test_baselines_are_last_in_tables_and_figures_have_every_bin():
    own_study, *_ = with_baselines(frames())
    own = results(own_study)
    shown = views.views(own, ["a", "b"])
    for name in ("models", "templates"):
        rows = [key[1] for key in shown[name].of(own).rows]
        assert rows[-2:] == [SUBJECT, WEIGHTS]
        assert not any(rows[:-2])
    # the headline covers completely scored sets
    lines = headline.text(own).splitlines()[3:7]
    assert [line.split()[0] for line in lines] == ["a", "b", "random", "majority"]
    rows = [key[1] for key in shown["slices"].of(own).rows]
    assert rows[:6] == [BY_NAME["sitelinks"].label(name) for name in BY_NAME["sitelinks"].bins]
    assert not {"1:1", "1:N"} & set(rows)
    above = shown["above_baselines"].of(own)
    assert [key[-1] for key in above.rows] == [f"without {SUBJECT}", f"without {WEIGHTS}"]
    rows = [key[1] for key in shown["slices_differences"].of(own).rows]
    assert set(rows) >= {"sitelinks: 1-4", "1:N"}
    drawn = {one.name: one.chart for one in figures.figures(own, MODELS, {})}
    assert "bear_slice_options_world_lite" not in drawn  # a single bin is no slice
    chart = drawn["bear_slice_sitelinks_world_lite"]
    bins = chart["layer"][0]["encoding"]["x"]["sort"]
    assert [name.split("\n")[0] for name in bins] == BY_NAME["sitelinks"].bins
    assert bins[2] == "5-19\nn = 5"
    # both complete models, the no-subject baseline, and chance
    rows = [row for rows in chart["datasets"].values() for row in rows if row["bin"] == bins[2]]
    marks = own.filter(pl.col("model").is_in([*MODELS, "random"]), metric="accuracy", group="",
                       slice="sitelinks: 5-19")  # fmt: skip
    marks = marks.filter(pl.col("without").is_in(["", SUBJECT]), instead="", aggregation="")
    assert sorted(row["value"] for row in rows) == sorted(marks["value"]) != []


# -- questions without their subject ---------------------------------------------------------------


def score_of(name, subject, template, label):
    """Return a score that depends on set, subject, template and option."""
    code = sum(map(ord, label))
    by_label = code * 7 % 11 - len(name) * (code % 2)
    return float(by_label + len(subject) * (code % 5) + template * (code % 3) - 60)


def content_free(sets):
    """Return CONTENT_FREE from {set (also the name of its relation): labels}."""
    rows = [
        (name, name, subject, t, o, score_of(name, subject, t, label), 2, -3.0, 1, None)
        for name, labels in sets.items()
        for subject, t, (o, label) in product(NO_SUBJECTS, range(3), enumerate(labels))
    ]
    return of_rows(schema.CONTENT_FREE, rows)


def mean_score(name, template, label):
    scored = [score_of(name, subject, template, label) for subject in NO_SUBJECTS]
    return sum(scored) / len(scored)


def test_the_no_subject_score_is_the_mean_over_content_free_subjects():
    made = benchmark({"P1": ("xyz", "xyx"), "P22": ("yz", "zy"), "P3": ("xy", "x")})
    found = without_subject(made["items"], content_free({"P1": "xyz", "P22": "yz"}))
    scored_rows = {row[:3]: row[3] for row in found.rows()}
    slow = {
        (f"{name}/Qs{row}", template, option): mean_score(name, template, label)
        for name, size, labels in (("P1", 3, "xyz"), ("P22", 2, "yz"))
        for row, template, (option, label) in product(range(size), range(3), enumerate(labels))
    }
    # P3 was not asked
    assert scored_rows.keys() == slow.keys()
    assert len(scored_rows) == 3 * (3 * 3 + 2 * 2)
    assert all(scored_rows[key] == pytest.approx(value) for key, value in slow.items())


def test_baselines_are_read_from_their_answer_files(tmp_path):
    """One probe has content-free subjects and random weights, the other has nothing usable."""
    made = frames((8, 3))
    write_benchmark(made, tmp_path / "world_lite")
    free = content_free({"P0": LABELS})
    random_init = {k: v for k, v in guesses(made, 0.3, 9, templates=1).items() if k[0] < "P0/Qs4"}
    paths = {}
    for name, frame, contract in (
        ("a", scores(guesses(made, 0.5, 1)), schema.SCORES),
        ("b", scores(guesses(made, 0.3, 2)), schema.SCORES),
        ("free", free, schema.CONTENT_FREE),
        ("none", free.head(0), schema.CONTENT_FREE),
        ("random_init", scores(random_init), schema.SCORES),
    ):
        paths[name] = tmp_path / f"{name}.parquet"
        schema.write(frame, contract, paths[name], {})
    row = {"benchmark": "world_lite", "model": "a", "prompt": "templates", "method": "sentence",
           "without": WEIGHTS}  # fmt: skip
    (found,) = make.studies(
        [probe("a"), probe("b")], [paths["a"], paths["b"]],
        {"world_lite": tmp_path / "world_lite"}, 0, [paths["free"], paths["none"]],
        files([row], [paths["random_init"]]),
    )  # fmt: skip
    assert [(f.probe, f.without) for f in found.baselines] == [(0, SUBJECT), (0, WEIGHTS)]
    means = {t: [mean_score("P0", t, label) for label in LABELS] for t in range(3)}
    blind = rates_by_hand(made, {(f"P0/Qs{i}", t): means[t] for i in range(8) for t in means})
    own = results(found)
    baseline = number(own, model="a", without=SUBJECT)
    assert (baseline["n"], baseline["value"]) == (8, pytest.approx(100 * sum(blind.values()) / 8))
    assert 0 < baseline["value"] < 100
    random = number(own, model="a", without=WEIGHTS)
    by_hand = rates_by_hand(made, random_init)
    assert (random["n"], random["value"]) == (4, pytest.approx(100 * sum(by_hand.values()) / 4))
    assert not own.filter(pl.col("without") != "", model="b").height
    # missing items are reported
    notes = " ".join(section.notes(own, MODELS))
    assert re.search(r"Without a prior of content-free subjects, .*: 11 items\.", notes)


def test_a_random_init_model_gets_a_balanced_sample():
    rows = [(f"P{r}", f"P{r}/{i}") for r, size in enumerate((9, 2, 5)) for i in range(size)]
    frame = pl.DataFrame(rows, schema=["relation", "item"], orient="row")
    for n, counts in ((3, [1, 1, 1]), (6, [2, 2, 2]), (10, [4, 2, 4]), (99, [9, 2, 5])):
        found = sample_evenly(frame, n, 0, ["item"], ["relation"], "twin")
        assert found.group_by("relation").len().sort("relation")["len"].to_list() == counts
        again = sample_evenly(frame.reverse(), n, 0, ["item"], ["relation"], "twin")
        assert found.equals(again)
    fewer = sample_evenly(frame, 4, 0, ["item"], ["relation"], "twin")
    more = sample_evenly(frame, 6, 0, ["item"], ["relation"], "twin")
    assert set(fewer["item"]) < set(more["item"])


def test_popularity_is_sitelinks_or_else_the_number_of_statements():
    made = benchmark({"P1": (["x", "y"], ["x", "y", "x"])})
    rows = [("Qs0", "Qx", 12), ("Qs1", "Qy", None), ("Qs2", "Qs1", None), ("Qs1", "Qz", None)]
    statements = pl.DataFrame(
        rows, schema=["subject", "object", "subject_sitelinks"], orient="row"
    ).with_columns(pl.col("subject_sitelinks").cast(pl.Int64))
    found = BearFrames(**made).with_popularity(statements)
    metas = dict(found.items.select("subject_id", "meta").rows())
    assert {k: json.loads(v) for k, v in metas.items()} == {
        "Qs0": {"sitelinks": 12},
        "Qs1": {"statements": 3},
        "Qs2": {"statements": 1},
    }


def test_a_relation_file_with_ids_only_is_ignored(tmp_path):
    path = tmp_path / "relations.parquet"
    assert relations_of(path) is None
    relations = pl.DataFrame({"relation": ["P1"], "cardinality": ["1:1"], "note": [""]})
    relations.select("relation").write_parquet(path)
    assert relations_of(path) is None
    relations.write_parquet(path)
    assert relations_of(path).columns == ["relation", "cardinality"]
