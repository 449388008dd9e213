"""Intervals of the nine benchmarks, named for their method; figures describing the benchmarks."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t

from kgprobe.metrics.attributes import measure
from kgprobe.metrics.intervals import wilson
from kgprobe.sampling import hash_key
from kgprobe.tables.attributes import constructs as ac
from kgprobe.tables.attributes import numbers as an
from kgprobe.tables.attributes.study import HEADLINE


def alphas(benchmark, rows, pooling):
    """Return a row per triple; `rows` holds the alphas of each example."""
    return pl.DataFrame(
        [
            (benchmark, f"e{i}", "p", j, float(a), pooling)
            for i, example in enumerate(rows)
            for j, a in enumerate(example)
        ],
        schema=["benchmark", "example", "pattern", "position", "alpha", "pooling"],
        orient="row",
    )


@pytest.mark.parametrize(
    ("benchmark", "rows", "pooling", "above", "below"),
    [
        ("entity_centric", [(0, 0), (0, 0), (0, 0)], "best", 0, 3),
        ("entity_centric", [(1, 1), (1, 1)], "best", 2, 2),
        ("entity_centric", [(1, 0)], "best", 0.5, 1),
        ("bias", [(0,), (0,), (0,), (0,)], "mean", 0, 4),
        ("symmetry", [(1, 0.5), (0, 0)], "mean", 0.5, 1),
        ("hierarchy", [(0.5, 0.5, 1), (0, 0, 0)], "mean", 0.25, 0.25),
    ],
)
def test_identical_resamples_fall_back_to_wilson(benchmark, rows, pooling, above, below):
    made = measure(alphas(benchmark, rows, pooling), by=["pooling"]).row(0, named=True)
    assert (made["numerator"], made["denominator"]) == (above, below)
    assert made["interval"] == "wilson"
    assert (made["low"], made["high"]) == pytest.approx(wilson(above, below))
    assert made["high"] - made["low"] > 0.1


def parts(values):
    """Return `parts` of symmetry, with one pattern per example."""
    return pl.DataFrame(
        [
            {"benchmark": "symmetry", "model": "m", "prompt": "", "method": "fill",
             "example": f"e{i}", "pattern": f"p{i}", "numerator": above, "denominator": 1.0,
             "partial": below, "missing": False, **HEADLINE}
            for i, (above, below) in enumerate(values)
        ]
    )  # fmt: skip


NONE = pl.DataFrame(schema={"example": pl.String, "cluster": pl.String})


def test_identical_patterns_have_no_cluster_interval():
    (same,) = an.clusters(parts([(0.0, 1.0)] * 4), NONE)
    assert (same.value, same.interval, same.n) == (0, None, 4)
    (other,) = an.clusters(parts([(0.0, 1.0), (1.0, 1.0), (0.0, 1.0)]), NONE)
    assert other.interval.low < other.value < other.interval.high
    assert other.interval.kind == "cluster bootstrap"


def test_patterns_are_resampled_whole():
    values = np.random.default_rng(2).random((17, 2))
    rows = parts(values.tolist()).with_columns(
        denominator=pl.Series(values[:, 1]), pattern=pl.Series([f"P{i % 7}" for i in range(17)])
    )
    (result,) = an.clusters(rows, NONE)
    sums = [values[i::7].sum(axis=0) for i in range(7)]
    generator = np.random.Generator(np.random.PCG64(hash_key(0, "bootstrap", "")))
    ratios = []
    for _ in range(2000):
        above, below = sum(sums[i] for i in generator.integers(0, 7, size=6))
        ratios.append(100 * above / below)
    tail = norm.cdf(-t.ppf(0.975, 6))
    assert result.interval[:2] == pytest.approx(tuple(np.quantile(ratios, [tail, 1 - tail])))
    assert (result.n, result.setting["drawn"]) == (7, "patterns")


def test_paths_and_bias_counts_for_built_and_probed_examples():
    def rows(benchmark, triples):
        return pl.DataFrame(
            [(f"{benchmark}{i}", 0, "p", s, p, i < 2) for i, (s, p) in enumerate(triples)],
            schema=["example", "position", "pattern", "subject", "predicate", "sampled"],
            orient="row",
        )

    examples = {
        "paths": rows("paths", [("Q1", "P1"), ("Q1", "P2"), ("Q2", "P1"), ("Q1", "P3")]),
        "bias": rows("bias", [("Q1", "P21"), ("Q2", "P30"), ("Q3", "P30")]),
    }
    alphas = pl.DataFrame(
        [("asymmetry", f"e{i}", j, float(i < right), "m", "templates", "fill")
         for j, right in ((0, 3), (1, 1)) for i in range(5)],
        schema=["benchmark", "example", "position", "alpha", "model", "prompt", "method"],
        orient="row",
    ).with_columns(pl.lit(v).alias(k) for k, v in HEADLINE.items())  # fmt: skip
    result = ac.estimates(examples, alphas)
    cells = {(n.benchmark, n.slice or n.model, n.metric): (n.value, n.n) for n in result}
    assert cells == {
        ("asymmetry", "m", "forward probe right"): (3, 5),
        ("asymmetry", "m", "reversed probe right"): (1, 5),
        ("paths", "built", "entities that they start from"): (2, 4),
        ("paths", "probed", "entities that they start from"): (1, 2),
        ("bias", "built", "continents (P30)"): (2, 3),
        ("bias", "probed", "continents (P30)"): (1, 2),
    }
    # a graph with other ids has none of the counted entities
    other = {"bias": rows("bias", [("a", "sex"), ("b", "continent")])}
    result = ac.estimates(other, alphas)
    assert {number.benchmark for number in result} == {"asymmetry"}


def test_entity_cluster_intervals_are_wider_when_examples_agree():
    rows = parts([(float(i < 20), 1.0) for i in range(40)])
    entities = pl.DataFrame({"example": rows["example"], "cluster": ["Q1"] * 20 + ["Q2"] * 20})
    over = {n.setting["drawn"]: n for n in an.clusters(rows, entities)}
    assert {kind: n.n for kind, n in over.items()} == {"patterns": 40, "entities": 2}
    assert over["patterns"].value == over["entities"].value == 50
    widths = {kind: n.interval.high - n.interval.low for kind, n in over.items()}
    assert widths["entities"] == 100
    assert widths["patterns"] < 40
