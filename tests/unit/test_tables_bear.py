"""BEAR's tables on frames small enough to count by hand."""

import math
import statistics

import numpy as np
import polars as pl
import pytest

from kgprobe.metrics.intervals import wilson
from kgprobe.tables.answers import judge
from kgprobe.tables.bear import make, published, section, views
from kgprobe.tables.results import Number, frame
from kgprobe.tables.scored import Scored
from kgprobe.tables.study import Study
from kgprobe.tables.views import write
from tests.unit.study_frames import (
    benchmark,
    guesses,
    number,
    p_by_signs,
    probe,
    results,
    scores,
    study,
)

# P1: four items, two options; P2: two items, each with its own answer (1:1)
FRAMES = benchmark({"P1": (["a", "b"], ["a", "a", "b", "b"]), "P2": (["c", "d"], ["c", "d"])})
#: which items are right under templates 0, 1, 2
RIGHT = {
    "P1/Qs0": (1, 1, 1), "P1/Qs1": (1, 0, 0), "P1/Qs2": (0, 0, 0), "P1/Qs3": (1, 1, 0),
    "P2/Qs0": (1, 0, 1), "P2/Qs1": (0, 0, 0),
}  # fmt: skip


def answers(right):
    gold = dict(FRAMES["items"].select("item", pl.col("answers").list.first()).iter_rows())
    return {
        (item, template): [
            0.0 if (option == gold[item]) == bool(hit) else -1.0 for option in (0, 1)
        ]
        for item, hits in right.items()
        for template, hit in enumerate(hits)
    }


def small(**options):
    return study(FRAMES, [(probe("m"), answers(RIGHT))], **options)


def test_score_sem_templates_macro_and_groups_by_hand():
    found = results(small()).filter(model="m")
    per_template = [100 * 4 / 6, 100 * 2 / 6, 100 * 2 / 6]
    score, error = number(found), number(found, "SEM")
    assert (score["value"], score["n"]) == (pytest.approx(100 * 8 / 18), 6)
    assert error["value"] == pytest.approx(statistics.stdev(per_template) / math.sqrt(3))
    for index, fraction in enumerate(per_template):
        assert number(found, template=index)["value"] == pytest.approx(fraction)
    first = number(found, template=0)
    assert (first["low"], first["interval"]) == (pytest.approx(100 * wilson(4, 6)[0]), "wilson")
    # P1: 6 of 12, P2: 2 of 6
    macro = [number(found, weighting=w) for w in ("relations", "relations resampled")]
    assert [m["value"] for m in macro] == [pytest.approx(100 * (6 / 12 + 2 / 6) / 2)] * 2
    # whole relations are resampled: both, or one of them twice
    assert [macro[1]["low"], macro[1]["high"]] == pytest.approx([100 / 3, 50])
    assert number(found, slice="1:N")["value"] == pytest.approx(50.0)
    one = number(found, slice="1:1")
    assert (one["value"], one["n"]) == (pytest.approx(100 / 3), 2)


def test_baselines_coincide_on_balanced_data_and_have_no_interval():
    found = results(small())
    for name in ("random", "majority"):
        row = number(found, model=name)
        assert (row["value"], row["low"]) == (pytest.approx(50.0), None)


def test_options_without_ids_are_identified_by_their_labels():
    """Otherwise all would be one answer, which a constant guess always gives."""
    skewed = benchmark({"P1": (["a", "b"], ["a", "a", "a", "b"])})
    skewed["candidates"] = skewed["candidates"].with_columns(id=pl.lit(""))
    found = results(study(skewed, [(probe(), guesses(skewed, 0.5, 1))]))
    assert number(found, model="majority")["value"] == 75.0
    assert number(found, model="random", slice="frequency: 2-4")["n"] == 3


def test_first_wins_is_shown_only_if_there_are_ties():
    assert "first wins" not in results(small())["mode"]
    tied = {key: [0.0, 0.0] for key in answers(RIGHT)}
    found = results(study(FRAMES, [(probe("m"), tied)])).filter(model="m")
    assert number(found)["value"] == 50.0
    # the lowest index is correct for P1/s0, P1/s1 and P2/s0
    assert number(found, mode="first wins")["value"] == 50.0
    assert number(found, "MRR")["value"] == pytest.approx(0.75)


def test_right_options_that_tie_with_wrong_ones_share_the_reciprocal_rank():
    """Nine right options and a wrong one tie: a right one is first in nine of ten orders, else
    second."""
    frames = benchmark({"P1": ([f"o{i}" for i in range(10)], ["o0", "o1"])})
    golds = pl.lit(list(range(9)), dtype=pl.List(pl.Int32))
    frames["items"] = frames["items"].with_columns(answers=golds)
    level = {(item, t): [0.0] * 10 for item in frames["items"]["item"] for t in range(3)}
    found = results(study(frames, [(probe("m"), level)])).filter(model="m")
    assert number(found)["value"] == pytest.approx(90)
    assert number(found, "MRR")["value"] == pytest.approx(0.9 + 0.1 / 2)


def test_one_template_has_no_standard_error():
    one = {key: value for key, value in answers(RIGHT).items() if key[1] == 0}
    found = results(study(FRAMES, [(probe("m"), one)])).filter(model="m")
    assert not found.filter(pl.col("metric").is_in(["SEM", "agreement"])).height
    # four of six: with one template the score is a proportion, so its interval is Wilson's
    # so is the subset with the answer last, which is all of them
    for row in (number(found), number(found, slice="answer last")):
        assert (row["low"], row["high"]) == pytest.approx([100 * b for b in wilson(4, 6)])


def test_every_relation_has_its_options_and_templates():
    found = results(small())
    own = found.filter(model="m")
    row = number(own, group="P1")
    assert (row["value"], row["n"]) == (pytest.approx(50.0), 4)
    assert number(own, group="P2", template=1)["value"] == 0.0
    assert number(found, "options", group="P2")["value"] == 2.0
    assert number(found, group="P2", model="random")["value"] == 50.0


def test_domains_count_a_relation_fully_or_split_it():
    info = pl.DataFrame(
        {"relation": ["P1", "P2"], "cardinality": ["1:N", "1:1"],
         "domains": [["Arts", "Movies"], ["Arts"]]},
    )  # fmt: skip
    found = results(small(relations=info)).filter(model="m")
    assert number(found, slice="domain: Arts")["value"] == pytest.approx(100 * 8 / 18)
    # P1 weighs half: (4 * 0.5 * 0.5 + 2 * 1/3) / (4 * 0.5 + 2)
    split = number(found, slice="domain: Arts", weighting="split")
    assert split["value"] == pytest.approx(100 * (1 + 2 / 3) / 4)
    assert number(found, slice="domain: Movies")["n"] == 4
    assert number(found, slice="1:1")["value"] == pytest.approx(100 / 3)
    assert not results(small())["slice"].str.starts_with("domain").any()


def test_agreement_of_templates_and_answer_positions():
    found = results(small()).filter(model="m")
    # the same best option under all three: s0 and s2 of P1, s1 of P2
    assert number(found, "agreement")["value"] == pytest.approx(50.0)
    assert number(found, "correct in all")["value"] == pytest.approx(100 / 6)
    assert number(found, slice="answer last")["value"] == pytest.approx(100 * 4 / 6)
    before = number(found, slice="answer before subject")
    assert before["value"] == pytest.approx(100 * 2 / 6)
    assert number(found, slice="answer elsewhere")["n"] == 6
    position = make.answer_position
    assert position("[X] is [Y]") == position("[X] is [Y] .") == "answer last"
    assert position("[Y], [X].") == "answer before subject"


def test_differences_are_paired_and_zero_for_equal_models():
    found = results(study(FRAMES, [(probe("a"), answers(RIGHT)), (probe("b"), answers(RIGHT))]))
    row = number(found, model="a", instead="b")
    # the same in every resample: a difference without an interval
    assert (row["value"], row["low"], row["high"]) == (0.0, None, None)
    assert number(found, model="a", instead="b", weighting="relations")["value"] == 0.0
    ways = [probe("a"), probe("a", method="sentence-answer_only")]
    found = results(study(FRAMES, [(one, answers(RIGHT)) for one in ways]))
    assert number(found, method="sentence", instead="a, sentence-answer_only")["n"] == 6
    assert set(results(small())["instead"]) == {""}


def test_differences_of_all_pairs_are_one_family_of_tests():
    """p by its definition, on rates by hand; a constant difference is not significant as such."""
    none = dict.fromkeys(RIGHT, (0, 0, 0))
    whole = dict.fromkeys(RIGHT, (1, 1, 1))
    found = results(study(
        FRAMES, [(probe(n), answers(r)) for n, r in zip("abc", (RIGHT, none, whole), strict=True)],
    ))  # fmt: skip
    rates = {"a": [sum(hits) / 3 for hits in RIGHT.values()], "b": [0.0] * 6, "c": [1.0] * 6}
    raw = {}
    # c is the best, with which the others are compared
    for one, other in ("ac", "bc"):
        differences = [x - y for x, y in zip(rates[one], rates[other], strict=True)]
        raw[one, other] = p_by_signs(differences)
    # six of six: both ends of 64 choices of signs, and each counts half
    assert raw["b", "c"] == 1 / 64
    reached = 0.0
    for rank, (one, other) in enumerate(sorted(raw, key=lambda pair: raw[pair])):
        reached = max(reached, min(1.0, (2 - rank) * raw[one, other]))
        row = number(found, "p after Holm", model=one, instead=other)
        assert row["value"] == pytest.approx(reached, abs=1e-9)
        assert number(found, "detectable difference", model=one, instead=other)["value"] > 0


@pytest.mark.parametrize("models", [2, 5])
def test_each_probe_is_compared_with_the_best_alone(models):
    """All pairs of forty models would be a family of 780 tests in each bin of a slice."""
    rates = [0.2, 0.5, 0.9, 0.4, 0.6][:models]
    answered = [(probe("abcde"[i]), guesses(FRAMES, rate, i)) for i, rate in enumerate(rates)]
    own = study(FRAMES, answered)
    best = "abcde"[int(np.argmax([rows["hit"].mean() for rows in own.hits]))]
    found = results(own).filter(metric="p after Holm")
    for _, rows in found.group_by("slice"):
        pairs = {frozenset(pair) for pair in rows.select("model", "instead").rows()}
        assert pairs == {frozenset((best, other)) for other in "abcde"[:models] if other != best}
    assert found["slice"].n_unique() > 1


def test_a_study_refuses_probes_of_other_items():
    fewer = {key: value for key, value in answers(RIGHT).items() if key[1] < 2}
    with pytest.raises(ValueError, match="other items or templates"):
        study(FRAMES, [(probe("a"), answers(RIGHT)), (probe("b"), fewer)])
    with pytest.raises(ValueError, match="two probes are the same"):
        study(FRAMES, [(probe("a"), answers(RIGHT)), (probe("a"), answers(RIGHT))])


def fake(score: float) -> published.Published:
    board = pl.DataFrame(
        [
            ("gpt2", "causal", 137, 2019, score, 0.5, "paper", "none"),
            ("opt", "causal", 125, 2022, 20.1, 0.5, "paper", "added"),
            ("bert", "masked", 109, 2018, 18.4, 0.4, "paper", ""),
            ("Random Baseline", "baseline", None, None, 4.68, None, "baseline", ""),
        ],
        schema=published.LEADERBOARD,
        orient="row",
    )
    later = pl.DataFrame([("gpt2", 14.5, 15.0)], schema=published.REMEASURED, orient="row")
    return published.Published(board, later)


def test_a_published_score_needs_the_same_items_and_bos_policy():
    paper, all_three = fake(13.49), [0, 1, 2]

    def shown(items=7731, templates=all_three, **changes):
        options = {"kind": "causal", "bos": "none", "published": "gpt2", **changes}
        return paper.score(probe("gpt2", "bear_released", **options), items, templates)

    board, later = published.LEADERBOARD_SOURCE, published.REMEASURED_SOURCE
    assert shown() == (13.49, board)
    assert shown(bos="forced") == (14.5, later)
    # the tokenizer decides under "default", as it did where the figure was measured
    assert shown(bos="default") == (13.49, board)
    assert shown(published="opt", bos="forced") == (20.1, board)
    assert shown(published="opt", bos="none") is None
    assert shown(published="") is None
    # the default masked scoring mode
    masked = {"kind": "masked", "bos": "-", "published": "bert"}
    ways = ("sentence", "sentence-within_word_l2r", "sentence-original", "sentence-sentence_l2r")
    assert [shown(**masked, method=name) for name in ways] == [(18.4, board)] * 2 + [None] * 2
    assert shown(items=600) is None
    assert shown(templates=[0]) is None
    assert paper.score(probe("gpt2", published="gpt2"), 7731, all_three) is None
    with pytest.raises(ValueError, match="valid: Random Baseline, bert, gpt2, opt"):
        shown(published="gpt9")
    assert paper.baseline("bear_released", 7731) == 4.68
    assert paper.baseline("bear_released", 600) is None


def test_sizes_are_shown_with_the_published_ones():
    known = study(FRAMES, [(probe("m", parameters=1000), answers(RIGHT))])
    found = results(known, published=fake(13.49))
    assert found.filter(metric="parameters", model="m")["value"].to_list() == [1000]
    row = number(found, model="gpt2", slice="causal")
    assert (row["high"], row["n"], row["published"]) == (pytest.approx(13.99), 0, 13.49)
    assert row["source"] == published.LEADERBOARD_SOURCE
    assert "Random Baseline" not in found["model"]
    # three models are enough for a correlation, two are not
    assert found.filter(metric="pearson")["slice"].to_list() == [""]
    assert not results(small()).filter(metric="parameters").height


def test_example_ranks_the_options_and_fills_the_sentence():
    raw = scores({key: [-3.0, -1.0] for key in answers(RIGHT)})
    options = section.example(small(), raw)
    assert options["label"].to_list() == ["b", "a"]
    assert options["correct"].to_list() == [False, True]
    assert options["rank"].to_list() == [1, 2]
    assert options["sentence"][0] == "S0 is b."
    with pytest.raises(ValueError, match="no item 'P7/Q1'"):
        section.example(small(), raw, "P7/Q1")


@pytest.mark.timing
def test_a_large_table_takes_seconds():
    """7,731 items in 60 relations, two models: the size of BEAR."""
    options = [f"o{i}" for i in range(6)]
    golds = [options[j % 6] for j in range(129)]
    frames = benchmark({f"P{i}": (options, golds) for i in range(60)})
    both = [(probe(name), guesses(frames, part, 5)) for name, part in (("a", 0.2), ("b", 0.4))]
    row = number(results(study(frames, both)), model="b")
    assert row["low"] < row["value"] < row["high"]
    assert row["high"] - row["low"] < 3


def test_views_hold_every_number_and_state_differences(tmp_path):
    two = [(probe("b", parameters=9), answers(RIGHT)), (probe("a"), answers(RIGHT))]
    found = results(study(FRAMES, two))
    shown = views.views(found, ["b", "a"])
    models = shown["models"].of(found)
    assert [key[2] for key in models.rows] == ["b", "a", "random", "majority"]
    assert "accuracy, %, mean over relations" in models.heads
    relations = shown["relations"].of(found)
    assert relations.heads[2:] == ["b", "a", "random", "majority", "options"]
    # 10 after 9, not after 1
    assert [key[1] for key in relations.rows] == ["P1", "P2"]
    differences = shown["differences"].of(found)
    assert [key[1:] for key in differences.rows] == [("b", "templates", "sentence", "a")]
    for view in shown.values():
        write(view, found, tmp_path / f"{view.name}.tsv")
    lines = (tmp_path / "relations.tsv").read_text().splitlines()
    assert lines[1].split("\t")[:2] == ["world_lite", "P1"]
    assert lines[1].split("\t")[2].startswith("50.0 [")


def test_tables_by_template_have_every_template():
    of = Number(metric="accuracy", benchmark="b", model="m", n=30, value=1.0)
    every = [of.but(group=g, setting={"template": i}) for i in range(12) for g in ("", "P1")]
    made = frame("bear", every)
    for name in ("templates", "relation_templates"):
        assert len(views.views(made)[name].of(made).columns) == 12


def test_preferences_equal_a_literal_count():
    rng = np.random.default_rng(3)
    made = benchmark({"P1": (["a", "b", "c"], ["a", "b", "c", "a"]), "P2": (["c", "d"], ["c"])})
    sizes = dict(made["candidates"].group_by("set").len().rows())
    tokens = {("P1", 0): 1, ("P1", 1): 2, ("P1", 2): 7, ("P2", 0): 2, ("P2", 1): 2}
    # few values, so that options tie
    values = {
        (item, template): rng.integers(-2, 0, sizes[item[:2]]).astype(float).tolist()
        for item in made["items"]["item"] for template in range(3)
    }  # fmt: skip
    rows = scores(values).with_columns(
        answer_count=pl.Series(
            [tokens[i[:2], c] for (i, _), v in sorted(values.items()) for c in range(len(v))],
            dtype=pl.Int32,
        )
    )
    task = Study(**made, benchmark="world_lite")
    one = Scored(probe("m"), rows, task)
    judged = judge(rows, task.items, task.candidates)
    found = {(x.metric, x.slice): x for x in make.preferences(one, judged)}
    total = 0.0
    for relation, n in (("P1", 4), ("P2", 1)):
        for template in range(3):
            wins = [0.0] * sizes[relation]
            for i in range(n):
                v = values[f"{relation}/Qs{i}", template]
                leaders = [c for c, x in enumerate(v) if x == max(v)]
                for c in leaders:
                    wins[c] += 1 / len(leaders)
            total += max(wins) / 3
    own = found.pop((make.PREDICTED, ""))
    assert (own.value, own.n) == (pytest.approx(100 * total / 5), 5)
    ranks = {}
    for (item, _), v in values.items():
        for c, x in enumerate(v):
            above, level = sum(y > x for y in v), sum(y == x for y in v)
            name = make.LENGTHS[min(tokens[item[:2], c], 5) - 1]
            relative = (above + (level - 1) / 2) / (len(v) - 1)
            ranks.setdefault((name, item), []).append(relative)
    assert {name for _, name in found} == {"1 token", "2 tokens", "5 tokens or more"}
    for (_, name), number_ in found.items():
        means = [statistics.mean(r) for (length, _), r in ranks.items() if length == name]
        assert (number_.value, number_.n) == (
            pytest.approx(100 * statistics.mean(means)),
            len(means),
        )
