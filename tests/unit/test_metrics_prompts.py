"""Metrics of prompts: ties, macro and micro by hand, bounds, any-sentence rule, paired gains."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgprobe.metrics import prompts
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.ranking import reciprocal_rank
from kgprobe.sampling import hash_key
from kgprobe.schema import EXAMPLES, OUTCOMES, check


def frames(rows: list[dict]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """EXAMPLES and OUTCOMES out of partial rows."""
    plain = {
        "group": "P1", "split": "test", "fact": "f", "fields": "{}", "label": "Rome",
        "surfaces": [], "others": [], "flags": [], "prompt": "searched", "best": 1, "worst": 1,
        "filtered_best": 1, "filtered_worst": 1, "options": 10, "answer": "Rome", "logprob": -1.0,
    }  # fmt: skip
    full = [{**plain, "example": f"e{number:03}", **row} for number, row in enumerate(rows)]
    made = []
    for contract in (EXAMPLES, OUTCOMES):
        frame = pl.DataFrame(
            [{c: row[c] for c in contract.columns} for row in full], schema=dict(contract.columns)
        )
        made.append(frame.unique(list(contract.key), maintain_order=True))
        check(made[-1], contract)
    return made[0], made[1]


def rows_of(rows: list[dict]) -> pl.DataFrame:
    return prompts.join_outcomes(*frames(rows))


def cell(found: pl.DataFrame, level: str, measure: str, group: str = "") -> dict:
    return found.row(
        by_predicate=(pl.col("level") == level)
        & (pl.col("measure") == measure)
        & (pl.col("group") == group),
        named=True,
    )


def test_macro_micro_and_intervals_by_hand():
    ranks = {"P1": [1, 2, 4], "P2": [1], "P3": [20, 11]}
    rows = [{"group": g, "best": r, "worst": r} for g, own in ranks.items() for r in own]
    found = prompts.summary(prompts.rank_outcomes(rows_of(rows)))
    assert cell(found, "group", "p1", "P1")["value"] == pytest.approx(1 / 3)
    low, high = wilson(1, 3)
    assert (cell(found, "group", "p1", "P1")["low"], cell(found, "group", "p1", "P1")["high"]) == (
        pytest.approx(low),
        pytest.approx(high),
    )
    assert cell(found, "macro", "p1")["value"] == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert cell(found, "micro", "p1")["value"] == pytest.approx(2 / 6)
    assert cell(found, "macro", "p10")["value"] == pytest.approx(2 / 3)
    assert cell(found, "micro", "p10")["value"] == pytest.approx(4 / 6)
    reciprocal = [[1, 1 / 2, 1 / 4], [1], [1 / 20, 1 / 11]]
    macro = np.mean([np.mean(own) for own in reciprocal])
    assert cell(found, "macro", "mrr")["value"] == pytest.approx(macro)
    assert cell(found, "micro", "mrr")["value"] == pytest.approx(
        np.mean(np.concatenate(reciprocal))
    )
    assert {row["n"] for row in found.filter(level="macro").to_dicts()} == {6}
    for row in found.to_dicts():
        assert row["low"] <= row["value"] <= row["high"]
        # one unit, or units that are alike, say nothing of others: no draw differs
        is_alone = row["group"] == "P2" or (row["level"], row["measure"]) == ("macro", "p10")
        is_proportion = row["measure"] != "mrr" and row["level"] != "macro"
        assert row["interval"] == ("wilson" if is_proportion or is_alone else "bootstrap"), row


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(1, 9), st.data())
def test_cut_and_ties_against_every_place_of_the_tie(scores, cut, data):
    gold = scores[data.draw(st.integers(0, len(scores) - 1))]
    above, equal = sum(s > gold for s in scores), sum(s == gold for s in scores)
    places = range(above + 1, above + equal + 1)
    expected = np.mean([1 / p if p <= cut else 0.0 for p in places])
    own = np.array([above + 1]), np.array([above + equal])
    assert reciprocal_rank(*own, cut)[0] == pytest.approx(expected)
    assert reciprocal_rank(*own)[0] == pytest.approx(np.mean([1 / p for p in places]))


def test_ranks_at_the_edges():
    rows = [
        {"best": b, "worst": w} for b, w in ((1, 1), (1, 2), (2, 2), (10, 10), (10, 11), (11, 11))
    ]
    found = prompts.rank_outcomes(rows_of(rows))
    assert found["p1"].to_list() == [1, 0.5, 0, 0, 0, 0]
    assert found["p10"].to_list() == [1, 1, 1, 1, 0.5, 0]
    mrr = [1, 0.75, 0.5, 0.1, (1 / 10 + 1 / 11) / 2, 1 / 11]
    assert found["mrr"].to_list() == pytest.approx(mrr)


def literal_means(values, seed):
    """Means of 2,000 samples with replacement, drawn one after another."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return [np.mean(values[generator.integers(0, len(values), len(values))]) for _ in range(2000)]


@pytest.mark.parametrize("seed", [None, 0, 4])
def test_bootstraps_draw_facts_within_their_relation(seed):
    # many different values: quantiles of few are the same for other draws
    rng = np.random.default_rng(6)
    own = {"P1": rng.random(8), "P2": rng.random(5)}
    values = pl.DataFrame(
        [("searched", g, f"e{i}", v) for g, every in own.items() for i, v in enumerate(every)],
        schema=["prompt", "group", "unit", "mrr"],
        orient="row",
    )
    found = prompts.summary(values, ("mrr",), **({} if seed is None else {"seed": seed}))
    means = {
        g: np.array(literal_means(v, hash_key(seed or 0, "bootstrap", g))) for g, v in own.items()
    }
    expected = {
        ("group", "P1"): means["P1"],
        ("group", "P2"): means["P2"],
        ("macro", ""): (means["P1"] + means["P2"]) / 2,
        ("micro", ""): (8 * means["P1"] + 5 * means["P2"]) / 13,
    }
    for (level, group), drawn in expected.items():
        row = cell(found, level, "mrr", group)
        assert (row["low"], row["high"]) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_rows_stand_in_order_of_prompt_and_group():
    rows = [
        {"prompt": f"p{9 - n % 10}", "group": f"P{9 - n // 10}", "example": f"e{n}"}
        for n in range(100)
    ]
    found = prompts.summary(prompts.rank_outcomes(rows_of(rows)), ("p1",))
    levels = [*[("group", f"P{g}") for g in range(10)], ("macro", ""), ("micro", "")]
    expected = [(f"p{n}", *level) for n in range(10) for level in levels]
    assert found.select("prompt", "level", "group").rows() == expected


def test_golds_without_rank_are_left_out_or_wrong():
    absent = {"best": None, "worst": None, "filtered_best": None, "filtered_worst": None}
    rows = rows_of([{}, {}, absent, {**absent, "group": "P2"}])
    dropped = prompts.summary(prompts.rank_outcomes(rows))
    assert (cell(dropped, "micro", "p1")["value"], cell(dropped, "micro", "p1")["n"]) == (1.0, 2)
    kept = prompts.summary(prompts.rank_outcomes(rows, absent="wrong"))
    assert (cell(kept, "micro", "p1")["value"], cell(kept, "micro", "p1")["n"]) == (0.5, 4)
    assert cell(kept, "group", "mrr", "P2")["value"] == 0.0


def test_filtered_ranks():
    rows = [
        {"best": 3, "worst": 3, "filtered_best": 1, "filtered_worst": 1},
        {"best": 2, "worst": 2, "filtered_best": 2, "filtered_worst": 2},
    ]
    every = rows_of(rows)
    assert prompts.rank_outcomes(every)["p1"].to_list() == [0.0, 0.0]
    assert prompts.rank_outcomes(every, filtered=True)["p1"].to_list() == [1.0, 0.0]


def test_a_fact_is_right_for_any_of_its_sentences():
    rows = rows_of(
        [
            {"fact": "a", "answer": "Paris"},
            {"fact": "a", "answer": "roman", "surfaces": ["Roman", "the Eternal City"]},
            {"fact": "b", "answer": "rome"},  # the label itself is compared with its case
            {"fact": "c", "answer": "Rome", "group": "P2"},
        ]
    )
    facts, each = prompts.sentences(rows)
    found = prompts.summary(facts, ("any_sentence", "sentences"))
    assert cell(found, "macro", "any_sentence")["value"] == pytest.approx((1 / 2 + 1) / 2)
    assert cell(found, "group", "sentences", "P1")["value"] == pytest.approx(1.5)
    assert cell(found, "micro", "any_sentence")["n"] == 3
    single = prompts.summary(each, ("sentence",))
    assert cell(single, "micro", "sentence")["value"] == pytest.approx(2 / 4)
    assert cell(single, "micro", "sentence")["interval"] == "wilson"


def test_accuracy_by_class():
    rows = rows_of([{"group": "", "label": c, "best": b, "worst": b} for c, b in
                    (("yes", 1), ("yes", 2), ("no", 1))])  # fmt: skip
    found = prompts.summary(prompts.rank_outcomes(prompts.by_label(rows)), ("p1",))
    assert cell(found, "group", "p1", "yes")["value"] == 0.5
    assert cell(found, "group", "p1", "no")["value"] == 1.0


def test_outcomes_need_their_examples():
    examples, outcomes = frames([{}, {}])
    with pytest.raises(ValueError, match=r"1 outcomes have no example, first \{.*'e001'\}"):
        prompts.join_outcomes(examples.head(1), outcomes)
    with pytest.raises(ValueError, match=r"2 outcomes have no example, first \{.*'e000'\}"):
        prompts.join_outcomes(examples.head(0), outcomes)
    with pytest.raises(ValueError, match="no outcomes of split 'dev'"):
        prompts.join_outcomes(examples, outcomes, split="dev")


def test_the_released_code_alone_cuts_the_vocabulary():
    assert prompts.cut_of("released") == 10_000
    assert [prompts.cut_of(mode) for mode in ("default", "paper")] == [None, None]
