"""Metrics of prompts: ties, macro and micro by hand, bounds, any-sentence rule, paired gains."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t

from kgprobe.metrics import prompts
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.sampling import hash_key
from kgprobe.schema import EXAMPLES, OUTCOMES, check
from kgprobe.tables.autoprompt import numbers
from kgprobe.tables.autoprompt.numbers import measured
from kgprobe.tables.results import Number


def frames(rows: list[dict]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return EXAMPLES and OUTCOMES from partial rows."""
    plain = {
        "group": "P1", "split": "test", "fields": "{}", "label": "Rome",
        "surfaces": [], "others": [], "flags": [], "prompt": "searched", "best": 1, "worst": 1,
        "filtered_best": 1, "filtered_worst": 1, "options": 10, "answer": "Rome", "logprob": -1.0,
    }  # fmt: skip
    full = [
        {**plain, "example": f"e{number:03}", "fact": f"f{number}", **row}
        for number, row in enumerate(rows)
    ]
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


def cell(values: pl.DataFrame, level: str, column: str, group: str = "", seed: int = 0) -> Number:
    """Return the number measured for a column at one level."""
    found = list(measured(Number(), values, {column: column}, (level,), seed))
    (one,) = (number for number in found if number.group == group)
    assert one.setting == ({"weighting": "items"} if level == "micro" else {})
    return one


def test_macro_micro_and_intervals_by_hand():
    ranks = {"P1": [1, 2, 4], "P2": [1], "P3": [20, 11]}
    rows = [{"group": g, "best": r, "worst": r} for g, own in ranks.items() for r in own]
    found = prompts.rank_outcomes(rows_of(rows))
    assert cell(found, "group", "p1", "P1").value == pytest.approx(100 / 3)
    assert cell(found, "group", "p1", "P1").interval == Interval(*wilson(1, 3), "wilson").times(100)
    assert cell(found, "macro", "p1").value == pytest.approx(100 * (1 / 3 + 1 + 0) / 3)
    assert cell(found, "micro", "p1").value == pytest.approx(200 / 6)
    assert cell(found, "macro", "p10").value == pytest.approx(200 / 3)
    assert cell(found, "micro", "p10").value == pytest.approx(400 / 6)
    reciprocal = [[1, 1 / 2, 1 / 4], [1], [1 / 20, 1 / 11]]
    macro = np.mean([np.mean(own) for own in reciprocal])
    assert cell(found, "macro", "mrr").value == pytest.approx(100 * macro)
    micro = np.mean(np.concatenate(reciprocal))
    assert cell(found, "micro", "mrr").value == pytest.approx(100 * micro)
    levels = [*[("group", g) for g in ranks], ("macro", ""), ("micro", "")]
    for (level, group), name in itertools.product(levels, numbers.MEASURES):
        one = cell(found, level, name, group)
        assert one.n == (len(ranks[group]) if group else 6)
        assert one.interval.low <= one.value <= one.interval.high
        # with one unit or equal units no bootstrap sample differs
        is_alone = group == "P2" or (level, name) == ("macro", "p10")
        is_proportion = name != "mrr" and level != "macro"
        assert one.interval.kind == ("wilson" if is_proportion or is_alone else "bootstrap"), one


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
    """Return means of 2,000 samples with replacement of size n - 1, in a loop."""
    generator = np.random.Generator(np.random.PCG64(seed))
    n = len(values)
    return [np.mean(values[generator.integers(0, n, n - 1)]) for _ in range(2000)]


@pytest.mark.parametrize("seed", [0, 4])
def test_bootstraps_resample_facts_within_relations(seed):
    # many different values, because quantiles of few do not depend on the samples
    rng = np.random.default_rng(6)
    own = {"P1": rng.random(8), "P2": rng.random(5)}
    values = pl.DataFrame(
        [(g, f"e{i}", f"s{i}", v) for g, every in own.items() for i, v in enumerate(every)],
        schema=["group", "unit", "subject", "mrr"],
        orient="row",
    )
    means = {g: np.array(literal_means(v, hash_key(seed, "bootstrap", g))) for g, v in own.items()}
    expected = {
        ("group", "P1"): means["P1"],
        ("group", "P2"): means["P2"],
        ("macro", ""): (means["P1"] + means["P2"]) / 2,
        ("micro", ""): (8 * means["P1"] + 5 * means["P2"]) / 13,
    }
    # Satterthwaite's, from the variances of the sum over 8 and 5 units, or of their two means
    freedom = {"P1": 7, "P2": 4}
    for level, (eight, five) in {"macro": (1 / 8, 1 / 5), "micro": (8, 5)}.items():
        freedom[level] = (eight + five) ** 2 / (eight**2 / 7 + five**2 / 4)
    for (level, group), drawn in expected.items():
        low, high, _ = cell(values, level, "mrr", group, seed).interval
        tail = norm.cdf(-t.ppf(0.975, freedom[group or level]))
        assert (low, high) == pytest.approx(tuple(100 * np.quantile(drawn, [tail, 1 - tail])))


def test_numbers_are_ordered_by_level_and_group():
    rows = [{"group": f"P{9 - n // 10}", "example": f"e{n}"} for n in range(100)]
    found = measured(Number(), prompts.rank_outcomes(rows_of(rows)), numbers.P1)
    wanted = [*[(f"P{g}", {}) for g in range(10)], ("", {}), ("", {"weighting": "items"})]
    assert [(one.group, one.setting) for one in found] == wanted


def test_golds_without_rank_are_left_out_or_wrong():
    absent = {"best": None, "worst": None, "filtered_best": None, "filtered_worst": None}
    rows = rows_of([{}, {}, absent, {**absent, "group": "P2"}])
    dropped = prompts.rank_outcomes(rows)
    assert (cell(dropped, "micro", "p1").value, cell(dropped, "micro", "p1").n) == (100, 2)
    kept = prompts.rank_outcomes(rows, absent="wrong")
    assert (cell(kept, "micro", "p1").value, cell(kept, "micro", "p1").n) == (50, 4)
    assert cell(kept, "group", "mrr", "P2").value == 0.0


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
    assert cell(facts, "macro", "any_sentence").value == pytest.approx(100 * (1 / 2 + 1) / 2)
    assert cell(facts, "group", "sentences", "P1").value == pytest.approx(1.5)
    # a count that is equal in every sample has no bounds
    assert cell(facts, "group", "sentences", "P1").interval.kind == "bootstrap"
    assert cell(facts, "group", "sentences", "P2").interval is None
    assert cell(facts, "micro", "any_sentence").n == 3
    single = cell(each, "micro", "sentence")
    # both sentences of fact a are drawn together
    assert (single.value, single.n) == (pytest.approx(50), 3)
    assert single.interval.kind == "cluster bootstrap"


def test_outcomes_need_their_examples():
    examples, outcomes = frames([{}, {}])
    with pytest.raises(ValueError, match=r"1 outcomes have no example, first \{.*'e001'\}"):
        prompts.join_outcomes(examples.head(1), outcomes)
    with pytest.raises(ValueError, match=r"2 outcomes have no example, first \{.*'e000'\}"):
        prompts.join_outcomes(examples.head(0), outcomes)
    with pytest.raises(ValueError, match="no outcomes of split 'dev'"):
        prompts.join_outcomes(examples, outcomes, split="dev")


def test_only_released_mode_cuts_the_vocabulary():
    assert prompts.cut_of("released") == 10_000
    assert [prompts.cut_of(mode) for mode in ("default", "paper")] == [None, None]
