"""Facts taught a known number of times: counts, recall, margin, AUC and the crossing by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import exposed
from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.config import ConfigError
from kgprobe.config import read as read_config
from kgprobe.probes.control import exposures as taught
from kgprobe.probes.control.recall import Asked
from kgprobe.probes.control.rows import (
    Lesson,
    Sentence,
    Siblings,
    asks_answer,
    gap_asks_answer,
    masked_row,
    seq2seq_row,
)
from kgprobe.probes.control.train import RECIPES, by_turns, train_control
from kgprobe.sheets import SheetError, by_name
from kgprobe.tables.answers import judge
from kgprobe.tables.bear import curves, exposures
from kgprobe.tables.results import frame
from tests.unit.study_frames import benchmark, scores

COUNTRIES = "Peru Chad Iran Cuba Mali Oman Fiji Laos Togo Iraq".split()
CITIES = "Lima Tunis Cairo Dakar Minsk Sofia Riga Oslo Bern Rome".split()
TEXTS = ["The capital of [X] is [Y].", "[Y] is the capital of [X].", "[X] has the capital [Y]."]
LESSONS = [Lesson("P36", c, t) for c, t in zip(COUNTRIES, CITIES, strict=True)]
TIMES = dict(zip(LESSONS, [1, 2, 3, 4, 5, 6, 7, 8, 9, 40], strict=True))


@pytest.mark.parametrize("kind", ["masked", "causal", "seq2seq"])
def test_every_lesson_is_shown_as_often_as_was_drawn(tmp_path, kind):
    recipe = replace(RECIPES[kind], rows=16)
    found = [
        train_control(
            kind, LESSONS, [*COUNTRIES, *CITIES], {"P36": TEXTS}, seed, tmp_path / name, recipe,
            times=TIMES,
        )
        for name, seed in (("a", 0), ("b", 1))
    ]  # fmt: skip
    seen = [{Lesson(*row[:3]): tuple(row[3:]) for row in record["seen"]} for record in found]
    for told in seen:
        assert {lesson: shown for lesson, (shown, _) in told.items()} == TIMES
    assert found[0]["steps"] == -(-sum(TIMES.values()) // 16)
    targets = [asked for _, asked in seen[0].values()]
    if kind == "causal":
        assert targets == [TIMES[lesson] for lesson in seen[0]]
    else:
        assert 0 < sum(targets) < sum(TIMES.values())
        assert seen[0] != seen[1]  # another seed asks for other words


def sentence(answer, start=4, size=10):
    """A sentence of `size` tokens, each its own word, between two special ones; ids are places."""
    words = np.array([-1, *range(size), -1])
    ids = 100 + np.arange(size + 2)
    return Sentence(ids, words, slice(start, start + answer), slice(1, 3), ("P", 0))


def test_a_row_asks_for_the_answer_where_one_of_its_tokens_is_a_target():
    rng, told = np.random.default_rng(0), Counter()
    short, long = sentence(1), sentence(3)
    siblings = Siblings([short, long])
    for one in (short, long):
        answer = set(one.ids[one.answer].tolist())
        for _ in range(400):
            _, targets = masked_row(one, siblings, 5, rng)
            literal = bool(answer & set(targets.tolist()))
            assert asks_answer(one, targets) == literal
            source, target = seq2seq_row(one, (6, 7), 8, rng)
            assert gap_asks_answer(one, source) == bool(answer & set(target.tolist()))
            told["masked", literal] += 1
            told["seq2seq", gap_asks_answer(one, source)] += 1
    assert asks_answer(short, short.ids)
    assert min(told.values()) > 50
    assert len(told) == 4


def test_templates_take_turns():
    asked = [Asked(lesson, number) for lesson in LESSONS for number in range(3)]
    found = np.array(by_turns(asked, TIMES, np.random.default_rng(0))).reshape(10, 3)
    assert found.sum(axis=1).tolist() == list(TIMES.values())
    assert (found.max(axis=1) - found.min(axis=1)).max() == 1
    # the first turn is not always the first template's
    assert len(set(found[found.sum(axis=1) % 3 == 1].argmax(axis=1).tolist())) > 1


def world(relations=3, size=8):
    """A set of `relations` with `size` items each, its options the countries."""
    golds = {f"P{n}": (CITIES[:4], [CITIES[i % 4] for i in range(size)]) for n in range(relations)}
    made = benchmark(golds)
    items = made["items"].with_columns(
        subject=pl.col("relation") + pl.col("subject"), subject_id="Q" + pl.col("item")
    )
    return Sets(items, made["candidates"], made["prompts"])


def test_counts_are_drawn_evenly_over_facts_and_relations():
    whole = world(relations=3, size=12)
    chosen = exposed.choose(whole, 4, 9, seed=0)
    known = exposed.facts(chosen.items, chosen.candidates)
    assert known.height == 36
    drawn = taught.draw(known, [1, 4, 16], seed=3)
    assert Counter(drawn.values()) == {0: 9, 1: 9, 4: 9, 16: 9}
    by_relation = Counter((fact.split("/")[0], count) for fact, count in drawn.items())
    assert set(by_relation.values()) == {3}
    assert drawn != taught.draw(known, [1, 4, 16], seed=4)
    assert drawn == taught.draw(known.reverse(), [1, 4, 16], seed=3)


def test_of_a_pair_or_a_name_one_fact_is_taken():
    whole = world(relations=2, size=4)
    same = whole.items.with_columns(
        subject_id=pl.when(item="P1/Qs0").then(pl.lit("QP0/Qs0")).otherwise("subject_id")
    )
    # P1/Qs0 now asks about the entities of P0/Qs0, whose answers are the same
    found = exposed.choose(replace(whole, items=same), 1, 7, 0).items["item"].to_list()
    assert len({"P0/Qs0", "P1/Qs0"} & set(found)) == 1
    with pytest.raises(ValueError, match="8, and the set has 7 that no other gives away"):
        exposed.choose(replace(whole, items=same), 1, 8, 0)


def test_more_facts_than_there_are_is_told_before_training():
    with pytest.raises(ValueError, match=r"10 facts for each of 3 counts .* are 30, .* has 24"):
        exposed.choose(world(), 3, 10, 0)


@pytest.mark.parametrize("counts", [[2, 1], [1, 1], [1, 4, 2]])
def test_counts_must_rise(counts):
    with pytest.raises(ConfigError, match=r"control\.exposures: counts must rise"):
        read_config({"run": {"name": "own"}, "control": {"exposures": {"counts": counts}}}, [])


def test_a_fact_that_was_not_shown_as_drawn():
    known = exposed.facts(world().items, world().candidates)
    drawn = dict.fromkeys(known["fact"], 0) | {known["fact"][0]: 2}
    labels = known.select("relation", "subject_label", "object_label").row(0)
    found = taught.counted(known, drawn, [[*labels, 2, 1]])
    schema.check(found, schema.EXPOSED)
    assert found.filter("taught").select("sentences", "targets").rows() == [(2, 1)]
    assert found.filter(~pl.col("taught"))["sentences"].sum() == 0
    with pytest.raises(RuntimeError, match="was shown 3 times, 2 were drawn"):
        taught.counted(known, drawn, [[*labels, 3, 1]])


def test_hit_and_margin_of_scores_by_hand():
    made = benchmark({"P1": (["a", "b", "c"], ["a", "b"])})
    found = scores(
        {
            ("P1/Qs0", 0): [-1.0, -3.0, -2.5],  # 1.5 ahead of c
            ("P1/Qs0", 1): [-4.0, -3.5, -9.0],  # 0.5 behind b
            ("P1/Qs1", 0): [-5.0, -5.0, -6.0],  # level with a: half a hit
            ("P1/Qs1", 1): [-2.0, -1.0, -4.0],  # 1 ahead of a
        }
    )
    told = exposures.of_scores(judge(found, made["items"], made["candidates"]))
    assert told["item"].to_list() == ["P1/Qs0", "P1/Qs1"]
    assert told["hit"].to_list() == [0.5, 0.75]
    assert told["margin"].to_list() == [0.5, 0.5]


def test_hit_and_margin_of_ranks_by_hand():
    key = {"item": "i", "masks": "multi", "pooling": "mean"}
    golds = [
        {**key, "template": 0, "gold": 2, "best": 1, "worst": 2, "score": -1.0},
        {**key, "template": 1, "gold": 2, "best": 3, "worst": 3, "score": -4.0},
        {**key, "template": 0, "gold": 2, "best": 9, "worst": 9, "score": -9.0, "pooling": "max"},
    ]
    ranks = pl.DataFrame([{"in_order": 1, "tokens": 1, **row} for row in golds])
    best = {0: [(1, -1.0), (2, -1.0), (0, -5.0)], 1: [(0, -1.5), (1, -2.0), (2, -4.0)]}
    tops = pl.DataFrame(
        [
            {**key, "template": t, "place": place, "candidate": c, "score": s}
            for t, told in best.items()
            for place, (c, s) in enumerate(told, 1)
        ]
    )
    # level with another option, then 2.5 behind the best
    assert exposures.of_ranks(ranks, tops).rows() == [("i", 0.25, -1.25)]


def answered(seeds=3, size=12, rng=None, kind="causal"):
    """Models of one kind whose margins grow with the times shown."""
    rng = rng or np.random.default_rng(1)
    made = []
    for seed in range(seeds):
        shown = np.roll(np.repeat([0, 1, 4, 16], size), seed * 5)
        margin = np.round(rng.normal(np.log1p(shown), 1.0), 1)  # rounded: some tie
        told = pl.DataFrame(
            {
                "fact": [f"f{i:03d}" for i in range(len(shown))],
                "exposures": shown,
                "hit": (margin > 0).astype(float),
                "margin": margin,
                "targets": shown // 2,
            }
        )
        made.append(exposures.Answered(kind, "sentence", told))
    return made


def area_by_pairs(told, count):
    """AUC, pair by pair."""
    shown = told.filter(exposures=count)["margin"].to_list()
    never = told.filter(exposures=0)["margin"].to_list()
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a in shown for b in never]
    return sum(won) / len(won)


def by_count(made, metric):
    own = frame("bear", made).filter(metric=metric)
    counts = own["setting"].str.json_path_match("$.exposures").cast(pl.Int64)
    return dict(zip(counts, own.iter_rows(named=True), strict=True))


def test_numbers_are_means_over_models_counted_literally():
    models = answered()
    made = exposures.numbers(models, 0.8, seed=0)
    areas = by_count(made, "AUC")
    assert list(areas) == [1, 4, 16]
    for count, row in areas.items():
        literal = [area_by_pairs(m.frame, count) for m in models]
        assert row["value"] == pytest.approx(np.mean(literal), abs=1e-12)
        assert row["low"] < row["value"] < row["high"]
        assert row["interval"] == "cluster bootstrap"
    for metric, column, factor in (("accuracy", "hit", 100), ("margin", "margin", 1),
                                   ("times a target", "targets", 1)):  # fmt: skip
        rows = by_count(made, metric)
        assert list(rows) == [0, 1, 4, 16]
        for count, row in rows.items():
            literal = [m.frame.filter(exposures=count)[column].mean() for m in models]
            assert row["value"] == pytest.approx(factor * np.mean(literal))
    every = pl.concat([m.frame for m in models])
    assert areas[4]["n"] == every.filter(exposures=4)["fact"].n_unique()


def test_the_crossing_is_the_least_count_that_reaches_the_area():
    models = answered()
    areas = {
        c: row["value"] for c, row in by_count(exposures.numbers(models, 0.8, 0), "AUC").items()
    }
    assert areas[1] < areas[4] < areas[16]
    for least in (areas[1], (areas[1] + areas[4]) / 2, areas[16]):
        (row,) = frame("bear", exposures.numbers(models, least, 0)).filter(
            metric="crossing"
        ).iter_rows(named=True)  # fmt: skip
        literal = next(count for count in (1, 4, 16) if areas[count] >= least)
        assert row["value"] == literal
    (row,) = frame("bear", exposures.numbers(models, 0.9999, 0)).filter(
        metric="crossing"
    ).iter_rows(named=True)  # fmt: skip
    assert (row["value"], row["low"]) == (None, None)
    assert row["numerator"] < row["denominator"] == 2000
    assert exposures.crossing({1: 0.96, 2: 0.5, 4: 0.99}, 0.95) == 1
    assert exposures.crossing({1: 0.5}, 0.95) is None


def test_the_crossing_of_sure_margins_has_a_narrow_interval():
    models = [
        replace(m, frame=m.frame.with_columns(margin=pl.when(pl.col("exposures") > 1)
        .then(5.0).otherwise(0.0) + pl.int_range(pl.len()) * 7 % 48 / 1000))
        for m in answered()
    ]  # fmt: skip
    (row,) = frame("bear", exposures.numbers(models, 0.95, 0)).filter(
        metric="crossing"
    ).iter_rows(named=True)  # fmt: skip
    assert (row["low"], row["value"], row["high"]) == (4, 4, 4)
    sure = by_count(exposures.numbers(models, 0.95, 0), "AUC")[16]
    assert (sure["value"], sure["interval"]) == (1.0, "newcombe")
    assert 0.8 < sure["low"] < 1.0


def test_facts_that_a_model_was_not_asked_are_told():
    models = answered()
    models[1] = replace(models[1], frame=models[1].frame[:-1])
    with pytest.raises(ValueError, match="1 facts were not asked of every model: f047"):
        exposures.numbers(models, 0.95, 0)


def test_checkpoints_stand_by_their_step_and_both_figures_are_drawn():
    made = benchmark({"P1": (["a", "b", "c"], ["a", "b", "c"])})
    found = []
    for step, ahead in ((0, -1.0), (1000, 2.0)):
        told = scores(
            {
                (item, 0): [ahead + i / 10 if c == gold else 0.0 for c in range(3)]
                for i, (item, gold) in enumerate(
                    made["items"].select("item", pl.col("answers").list.first()).rows()
                )
            }
        )
        judged = judge(told, made["items"], made["candidates"])
        asked = {"benchmark": "bear_lite", "prompt": "templates", "method": "sentence"}
        found += exposures.of_steps("pythia-160m", step, asked, judged)
    values = {(n.setting["step"], n.metric): n.value for n in found}
    assert values[0, "accuracy"] == 0
    assert values[1000, "accuracy"] == 100
    assert values[0, "margin"] == pytest.approx(-0.9)
    assert values[1000, "margin"] == pytest.approx(2.1)
    own = frame("bear", [*found, *exposures.numbers(answered(), 0.95, 0)])
    kinds = {"pythia-160m": "causal", "control-exposed-causal": "causal"}
    drawn = curves.figures(own, kinds, 0.95)
    assert [one.name for one in drawn] == ["exposures", "steps"]
    names = [view.name for view in curves.views(own)]
    assert names == ["crossings", "exposures", "steps"]
    assert len(curves.chapter(own, drawn).grids) == 3


def test_a_step_is_that_of_its_branch():
    row = {
        "model": "m", "kind": "causal", "source": "hub:a/b", "revision": "step16", "bos": "none",
        "note": "its commit: revision never seen in a public file", "step": "16", "_line": "2",
    }  # fmt: skip
    assert by_name([row], "models.tsv")
    with pytest.raises(SheetError, match="line 2: step '8' of 'm', whose revision is 'step16'"):
        by_name([{**row, "step": "8"}], "models.tsv")
    with pytest.raises(SheetError, match="revision 'step16' of 'm' may move"):
        by_name([{**row, "note": ""}], "models.tsv")
