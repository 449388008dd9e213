"""Metrics of the nine attributes: the worked example, a literal reference, and their properties."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

from kgprobe.metrics.attributes import EQUATIONS, fractions, measure
from kgprobe.sampling import hash_key

RATIOS = ("symmetry", "bidirectional", "paths", "ambiguous")
CHAINS = ("hierarchy", "composite")
SIZES = {name: equation[0] for name, equation in EQUATIONS.items()}
EVERY = (*SIZES, "entity_centric")


def alphas(benchmark, examples, patterns=None, **settings_):
    """Return ALPHAS from lists of scores; by default every example has its own pattern."""
    rows = [
        (benchmark, f"e{i:03}", (patterns or {}).get(i, "P1"), j, alpha, *settings_.values())
        for i, scores in enumerate(examples)
        for j, alpha in enumerate(scores)
    ]
    names = ["benchmark", "example", "pattern", "position", "alpha", *settings_]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pl.col("alpha").cast(pl.Float64)
    )


def one(frame):
    assert frame.height == 1
    return frame.row(0, named=True)


def percent(row):
    return round(100 * row["low"], 2), round(100 * row["high"], 2)


PAIRS = [(1, 1), (1, 0), (0, 1), (0, 0)]
THREES = [(1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 0, 0)]


@pytest.mark.parametrize(
    ("benchmark", "scores", "counts", "bounds"),
    [
        *((name, PAIRS, (1, 3, 1), (6.15, 79.23)) for name in RATIOS),
        *((name, THREES, (1, 2, 2), (9.45, 90.55)) for name in CHAINS),
        ("asymmetry", [(1, 0), (1, 1), (0, 1), (0, 0)], (1, 4, 0), (4.56, 69.94)),
        ("bias", [(1,), (0,), (0,), (0,)], (1, 4, 0), (4.56, 69.94)),
    ],
)
def test_worked_examples(benchmark, scores, counts, bounds):
    row = one(measure(alphas(benchmark, scores)))
    assert (row["numerator"], row["denominator"], row["undefined"]) == counts
    assert percent(row) == bounds


def test_ambiguous_with_the_head_as_denominator():
    given_ = alphas("ambiguous", [(1, 1), (1, 0), (0, 1), (0, 0)])
    row = one(measure(given_, ambiguous_denominator="head"))
    assert (row["numerator"], row["denominator"], row["undefined"]) == (1, 2, 2)
    assert percent(row) == (9.45, 90.55)
    with pytest.raises(ValueError, match="valid: or, head"):
        measure(given_, ambiguous_denominator="tail")


def test_entity_centric_by_relation():
    given_ = alphas("entity_centric", [(1, 0), (1, 1)]).with_columns(
        pattern=pl.format("P{}", "position")
    )
    found = measure(given_, patterns=True)
    assert dict(found.select("pattern", "value_pooled").rows()) == {"all": 0.75, "P0": 1, "P1": 0.5}


def test_a_relation_named_all_is_not_the_whole():
    given_ = alphas("entity_centric", [(1, 0), (1, 1)]).with_columns(
        pattern=pl.Series(["all", "P1"] * 2)
    )
    found = measure(given_, patterns=True).select("pattern", "value_pooled").rows()
    assert sorted(found) == [("P1", 0.5), ("all", 0.75), ("relation all", 1)]


@pytest.mark.parametrize("benchmark", [*RATIOS, *CHAINS])
def test_without_a_defined_example_there_is_no_value(benchmark):
    row = one(measure(alphas(benchmark, [(0,) * SIZES[benchmark]] * 3)))
    assert row["value_pooled"] is row["value_mean"] is row["low"] is row["high"] is None
    assert (row["numerator"], row["denominator"], row["undefined"]) == (0, 0, 3)
    assert row["interval"] == "none"


def test_missing_is_not_wrong():
    row = one(measure(alphas("symmetry", [(1, 1), (None, 1), (0, 0)])))
    assert (row["examples"], row["missing"], row["undefined"]) == (2, 1, 1)
    assert row["value_pooled"] == 1
    lost = alphas("symmetry", [(1, 1), (1, 1)]).filter(
        (pl.col("example") == "e000") | (pl.col("position") == 0)
    )
    assert one(measure(lost))["missing"] == 1
    row = one(measure(alphas("entity_centric", [(1, None, 1), (1, 0, 1, 0)])))
    assert (row["examples"], row["missing"], row["value_pooled"]) == (1, 1, 0.5)


def test_partial_scores():
    given_ = {
        "asymmetry": [(1, 0), (1, 1), (0, 0), (0, 1)],
        "bias": [(1,)],
        "hierarchy": [(1, 1, 0), (0, 1, 1)],
        "symmetry": [(0, 1), (0, 0)],
    }
    made = measure(pl.concat(alphas(name, scores) for name, scores in given_.items()))
    found = made.select("benchmark", "partial", "examples").rows()
    partial = [
        ("asymmetry", 0.5, 4),
        ("bias", None, 1),
        ("hierarchy", 0.5, 2),
        ("symmetry", 0.5, 2),
    ]
    assert found == partial


def drawn_with_replacement(above, below, seed):
    """Return percentiles of the ratios of 2,000 samples of size n - 1, widened as Student's t."""
    generator = np.random.Generator(np.random.PCG64(seed))
    ratios = []
    for _ in range(2000):
        chosen = [int(i) for i in generator.integers(0, len(above), size=len(above) - 1)]
        ratios.append(sum(above[i] for i in chosen) / sum(below[i] for i in chosen))
    tail = norm.cdf(-t.ppf(0.975, sum(value > 0 for value in below) - 1))
    return np.quantile(ratios, tail), np.quantile(ratios, 1 - tail)


@pytest.mark.parametrize("seed", [None, 0, 3])
def test_the_interval_of_fractional_scores_is_a_bootstrap_over_examples(seed):
    # many different values, because quantiles of few do not depend on the samples
    scores = [tuple(pair) for pair in np.random.default_rng(1).random((9, 2)).tolist()]
    given_ = alphas("symmetry", scores, kind="token_mean")
    row = one(measure(given_, by=["kind"], **({} if seed is None else {"seed": seed})))
    above, below = zip(*(literal("symmetry", s) for s in scores), strict=True)
    expected = drawn_with_replacement(above, below, hash_key(seed or 0, "bootstrap", ""))
    assert (row["low"], row["high"]) == pytest.approx(expected)
    assert row["low"] < row["value_pooled"] < row["high"]


def test_wrong_input_is_reported():
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        measure(alphas("bias", [(1.5,)]))
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        measure(alphas("bias", [(-0.5,)]))
    with pytest.raises(ValueError, match="no metric of"):
        measure(alphas("transitivity", [(1,)]))
    with pytest.raises(ValueError, match="appears twice"):
        measure(pl.concat([alphas("bias", [(1,)])] * 2))
    with pytest.raises(ValueError, match="nothing to measure"):
        measure(alphas("bias", [(1,)]).clear())


def literal(benchmark, scores):
    """Return the numerator and denominator of one example, by cases."""
    first, *rest = scores
    if benchmark == "asymmetry":
        return first * (1 - rest[0]), 1.0
    if benchmark == "entity_centric":
        return sum(scores) / len(scores), 1.0
    if benchmark == "bias":
        return first, 1.0
    if benchmark in CHAINS:
        return first * rest[0] * rest[1], first * rest[0]
    return first * rest[0], max(first, rest[0])


SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def examples(draw, values=SCORES):
    benchmark = draw(st.sampled_from(EVERY))
    size = SIZES.get(benchmark, 4)
    return benchmark, draw(st.lists(st.tuples(*[values] * size), min_size=1, max_size=12))


@settings(max_examples=60, deadline=None)
@given(examples())
def test_metric_equals_a_slow_loop(given_):
    benchmark, scores = given_
    both = [literal(benchmark, example) for example in scores]
    defined = [(n, d) for n, d in both if d > 0]
    row = one(measure(alphas(benchmark, scores)))
    assert row["undefined"] == len(both) - len(defined)
    assert row["numerator"] == pytest.approx(sum(n for n, _ in defined))
    assert row["denominator"] == pytest.approx(sum(d for _, d in defined))
    if defined:
        total = sum(n for n, _ in defined) / sum(d for _, d in defined)
        assert row["value_pooled"] == pytest.approx(total)
        mean = sum(n / d for n, d in defined) / len(defined)
        assert row["value_mean"] == pytest.approx(mean)
        assert row["low"] - 1e-9 <= row["value_pooled"] <= row["high"] + 1e-9


@settings(max_examples=40, deadline=None)
@given(examples())
def test_bounds_and_row_order(given_):
    benchmark, scores = given_
    frame = alphas(benchmark, scores)
    rows = fractions(frame)
    assert (rows["numerator"] <= rows["denominator"] + 1e-12).all()
    assert (rows["denominator"] <= 1).all()
    assert (rows["numerator"] >= 0).all()
    assert measure(frame).equals(measure(frame.reverse()))
