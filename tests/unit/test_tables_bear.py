"""BEAR's tables on frames small enough to count by hand."""

import math
import statistics

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.metrics.intervals import wilson
from kgprobe.tables import bear, bear_figures, bear_templates, published, table
from kgprobe.tables.resample import by_relation
from kgprobe.tables.study import Study
from tests.unit.study_frames import benchmark, guesses, probe, scores, study

# P1: four items, two options; P2: two items, each with its own answer (1:1)
FRAMES = benchmark({"P1": (["a", "b"], ["a", "a", "b", "b"]), "P2": (["c", "d"], ["c", "d"])})
#: which items are right under templates 0, 1, 2
RIGHT = {
    "P1/Qs0": (1, 1, 1),
    "P1/Qs1": (1, 0, 0),
    "P1/Qs2": (0, 0, 0),
    "P1/Qs3": (1, 1, 0),
    "P2/Qs0": (1, 0, 1),
    "P2/Qs1": (0, 0, 0),
}


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
    cells = table.lookup(bear.models([small()]))
    value = {
        column: cells["m | world_lite | sentence", column] for column in bear.MODEL_COLUMNS[:9]
    }
    per_template = [100 * 4 / 6, 100 * 2 / 6, 100 * 2 / 6]
    assert value["score"]["value"] == pytest.approx(100 * 8 / 18)
    assert value["score"]["n"] == 6
    assert value["sem"]["value"] == pytest.approx(statistics.stdev(per_template) / math.sqrt(3))
    assert value["sem"]["n"] == 3
    for index, share in enumerate(per_template):
        assert value[f"template {index}"]["value"] == pytest.approx(share)
    assert value["template 0"]["low"] == pytest.approx(100 * wilson(4, 6)[0])
    # P1: 6 of 12, P2: 2 of 6
    assert value["macro"]["value"] == pytest.approx(100 * (6 / 12 + 2 / 6) / 2)
    assert value["macro, relations resampled"]["n"] == 2
    assert value["1:N"]["value"] == pytest.approx(50.0)
    assert value["1:1"]["value"] == pytest.approx(100 / 3)
    assert value["1:1"]["n"] == 2


def test_baselines_coincide_on_balanced_data_and_have_no_interval():
    cells = table.lookup(bear.models([small()]))
    for name in ("random", "majority"):
        row = cells[f"{name} | world_lite", "score"]
        assert row["value"] == pytest.approx(50.0)
        assert row["low"] is None
    skewed = benchmark({"P1": (["a", "b"], ["a", "a", "a", "b"])})
    one = study(skewed, [(probe(), guesses(skewed, 0.5, 1))])
    assert table.lookup(bear.models([one]))["majority | world_lite", "score"]["value"] == 75.0


def test_without_ties_first_wins_is_not_printed_and_with_ties_it_is():
    assert "first wins" not in bear.models([small()])["column"]
    tied = {key: [0.0, 0.0] for key in answers(RIGHT)}
    cells = table.lookup(bear.models([study(FRAMES, [(probe("m"), tied)])]))
    assert cells["m | world_lite | sentence", "score"]["value"] == 50.0
    # the lowest index is correct for P1/s0, P1/s1 and P2/s0
    assert cells["m | world_lite | sentence", "first wins"]["value"] == 50.0
    assert cells["m | world_lite | sentence", "mrr"]["value"] == pytest.approx(0.75)


def test_one_template_has_no_standard_error():
    one = {key: value for key, value in answers(RIGHT).items() if key[1] == 0}
    single = study(FRAMES, [(probe("m"), one)])
    frame = bear.models([single])
    assert "sem" not in frame["column"]
    # four of six: with one template the score is a share, so its interval is Wilson's
    cells = table.lookup(frame)
    row = cells["m | world_lite | sentence", "score"]
    assert (row["low"], row["high"]) == pytest.approx([100 * b for b in wilson(4, 6)])


def test_where_all_is_right_the_interval_is_not_a_point():
    perfect = answers(dict.fromkeys(RIGHT, (1, 1, 1)))
    cells = table.lookup(bear.models([study(FRAMES, [(probe("m"), perfect)])]))
    row = cells["m | world_lite | sentence", "score"]
    assert (row["value"], row["high"]) == (100.0, 100.0)
    assert row["low"] == pytest.approx(100 * wilson(6, 6)[0])


def test_relations_table_holds_every_relation_with_its_options_and_templates():
    cells = table.lookup(bear.relations([small()]))
    assert cells["P1", "m | world_lite | sentence"]["value"] == pytest.approx(50.0)
    assert cells["P1", "m | world_lite | sentence"]["n"] == 4
    assert cells["P2", "m | world_lite | sentence | template 1"]["value"] == 0.0
    assert cells["P2", "options | world_lite"]["value"] == 2.0
    assert cells["P2", "random | world_lite"]["value"] == 50.0


def test_domains_count_a_relation_fully_and_the_split_reading_divides_it():
    info = pl.DataFrame(
        {
            "relation": ["P1", "P2"],
            "cardinality": ["1:N", "1:1"],
            "domains": [["Arts", "Movies"], ["Arts"]],
        }
    )
    cells = table.lookup(bear.domains([small(relations=info)]))
    label = "m | world_lite | sentence"
    assert cells["Arts", label]["value"] == pytest.approx(100 * 8 / 18)
    # P1 weighs half: (4 * 0.5 * 0.5 + 2 * 1/3) / (4 * 0.5 + 2)
    assert cells["Arts", f"{label} | split"]["value"] == pytest.approx(100 * (1 + 2 / 3) / 4)
    assert cells["Movies", label]["n"] == 4
    assert cells["1:1", label]["value"] == pytest.approx(100 / 3)
    assert bear.domains([small()]) is None


def test_templates_table_agreement_and_answer_positions():
    cells = table.lookup(bear_templates.templates([small()]))
    label = "m | world_lite | sentence"
    # the same best option under all three: s0 and s2 of P1, s1 of P2
    assert cells[label, "agreement"]["value"] == pytest.approx(50.0)
    assert cells[label, "correct in all"]["value"] == pytest.approx(100 / 6)
    assert cells[label, "answer last"]["value"] == pytest.approx(100 * 4 / 6)
    assert cells[label, "answer before subject"]["value"] == pytest.approx(100 * 2 / 6)
    assert cells[label, "answer elsewhere"]["n"] == 6
    position = bear_templates.answer_position
    assert position("[X] is [Y]") == position("[X] is [Y] .") == "answer last"
    assert position("[Y], [X].") == "answer before subject"


def test_differences_are_paired_so_equal_models_differ_by_exactly_nothing():
    same = study(FRAMES, [(probe("a"), answers(RIGHT)), (probe("b"), answers(RIGHT))])
    (row,) = bear.differences([same]).filter(pl.col("column") == "score").iter_rows(named=True)
    # the same in every resample: a difference without an interval
    assert (row["value"], row["low"], row["high"]) == (0.0, None, None)
    assert row["row"] == "a | world_lite | sentence minus b | world_lite | sentence"
    assert bear.differences([small()]) is None


def test_bootstrap_equals_a_loop_that_resamples_items_within_relations():
    generator = np.random.default_rng(0)
    values = generator.integers(0, 2, size=(300, 2)).astype(float)
    owners = ["P1"] * 200 + ["P2"] * 100
    boot = by_relation(values, owners, 4000, 7)
    low, high = boot.interval(0)
    loop = []
    for _ in range(4000):
        drawn = np.concatenate(
            [generator.integers(0, 200, 200), 200 + generator.integers(0, 100, 100)]
        )
        loop.append(values[drawn, 0].mean())
    assert low == pytest.approx(np.quantile(loop, 0.025), abs=0.006)
    assert high == pytest.approx(np.quantile(loop, 0.975), abs=0.006)
    # a weighted mean by hand
    weights = np.array([1.0, 0.0])
    assert boot.mean(1, weights) == pytest.approx(values[:200, 1].mean())


def test_the_bootstrap_is_repeatable_and_a_relation_keeps_its_draws_beside_others():
    values = np.arange(8.0)[:, None] % 3
    both = by_relation(values, ["P1"] * 4 + ["P2"] * 4, 50, 3)
    again = by_relation(values, ["P1"] * 4 + ["P2"] * 4, 50, 3)
    alone = by_relation(values[4:], ["P2"] * 4, 50, 3)
    assert np.array_equal(both.replicates, again.replicates)
    assert np.array_equal(both.replicates[:, 1], alone.replicates[:, 0])
    other = by_relation(values, ["P1"] * 4 + ["P2"] * 4, 50, 4)
    assert not np.array_equal(both.replicates, other.replicates)


def test_a_study_refuses_probes_of_other_items():
    fewer = {key: value for key, value in answers(RIGHT).items() if key[1] < 2}
    with pytest.raises(ValueError, match="other items or templates"):
        study(FRAMES, [(probe("a"), answers(RIGHT)), (probe("b"), fewer)])
    with pytest.raises(ValueError, match="two probes have one label"):
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


def test_a_published_score_stands_beside_the_same_items_and_bos_policy_only():
    paper, all_three = fake(13.49), [0, 1, 2]

    def shown(items=7731, templates=all_three, **changes):
        options = {"kind": "causal", "bos": "none", "published": "gpt2", **changes}
        return paper.score(probe("gpt2", "bear_released", **options), items, templates)

    assert shown() == 13.49
    assert shown(bos="forced") == 14.5
    # the tokenizer decides under "default", as it did where the figure was measured
    assert shown(bos="default") == 13.49
    assert shown(published="opt", bos="forced") == 20.1
    assert shown(published="opt", bos="none") is None
    assert shown(published="") is None
    assert shown(items=600) is None
    assert shown(templates=[0]) is None
    assert paper.score(probe("gpt2", published="gpt2"), 7731, all_three) is None
    with pytest.raises(ValueError, match="legal: Random Baseline, bert, gpt2, opt"):
        shown(published="gpt9")
    assert paper.baseline("bear_released", 7731) == 4.68
    assert paper.baseline("bear_released", 600) is None


def test_size_puts_ours_beside_the_published_points():
    known = study(FRAMES, [(probe("m", parameters=1000), answers(RIGHT))])
    cells = table.lookup(bear_figures.size([known, small()], fake(13.49)))
    assert cells["m | world_lite | sentence", "parameters"]["value"] == 1000
    assert cells["m | world_lite | sentence", "score"]["low"] is not None
    assert cells["published | causal | gpt2", "score"]["high"] == pytest.approx(13.99)
    assert ("published | baseline | Random Baseline", "score") not in cells
    assert bear_figures.size([small()]) is None


def test_example_ranks_the_options_and_fills_the_sentence():
    raw = scores({key: [-3.0, -1.0] for key in answers(RIGHT)})
    options = bear_figures.example(small(), probe("m"), raw)
    assert options["label"].to_list() == ["b", "a"]
    assert options["correct"].to_list() == [False, True]
    assert options["rank"].to_list() == [1, 2]
    assert options["sentence"][0] == "S0 is b."
    frame = bear_figures.example_table(options, probe("m"), "P1/Qs0")
    schema.check(frame, schema.TABLE)
    assert bear_figures.fill("[X] of [Y].", "a [Y]", "b") == "A [Y] of b."
    with pytest.raises(ValueError, match="no item 'P7/Q1'"):
        bear_figures.example(small(), probe("m"), raw, "P7/Q1")


def test_a_large_table_is_made_in_seconds():
    """7,731 items in 60 relations, two models: the size of BEAR."""
    options = [f"o{i}" for i in range(6)]
    frames = benchmark(
        {f"P{i}": (options, [options[j % 6] for j in range(129)]) for i in range(60)}
    )
    both = [(probe(name), guesses(frames, share, 5)) for name, share in (("a", 0.2), ("b", 0.4))]
    large: Study = study(frames, both, resamples=2000)
    cells = table.lookup(bear.models([large]))
    row = cells["b | world_lite | sentence", "score"]
    assert row["low"] < row["value"] < row["high"]
    assert row["high"] - row["low"] < 3


def test_tsv_is_sorted_short_and_leaves_nulls_empty(tmp_path):
    frame = table.build(
        [
            table.cell("t", "r", "b", 1 / 3, 4, (0.0, -0.00001)),
            table.cell("t", "r", "a", 135_000_000.0, 1),
        ]
    )
    table.write_tsv(frame, tmp_path / "t.tsv")
    lines = (tmp_path / "t.tsv").read_text().splitlines()
    assert lines[0].split("\t") == list(schema.TABLE.columns)
    assert lines[1] == "bear\tt\tr\ta\t135000000\t1\t\t\t"
    assert lines[2] == "bear\tt\tr\tb\t0.3333\t4\t0\t0\t"
