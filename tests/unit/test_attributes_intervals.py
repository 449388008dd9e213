"""No interval of the nine without width, and the name of each is that of what was computed."""

import numpy as np
import polars as pl
import pytest

from kgprobe.metrics.attributes import measure
from kgprobe.metrics.intervals import wilson
from kgprobe.sampling import hash_key
from kgprobe.tables.attributes import numbers as an
from kgprobe.tables.attributes.study import HEADLINE


def alphas(benchmark, rows, pooling):
    """A row per triple; `rows`: the alphas of each example."""
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
def test_where_all_resamples_are_the_same_wilson_stands_by_name(
    benchmark, rows, pooling, above, below
):
    made = measure(alphas(benchmark, rows, pooling), by=["pooling"]).row(0, named=True)
    assert (made["numerator"], made["denominator"]) == (above, below)
    assert made["interval"] == "wilson"
    assert (made["low"], made["high"]) == pytest.approx(wilson(above, below))
    assert made["high"] - made["low"] > 0.1


def parts(values):
    """`parts` of symmetry, a pattern per example."""
    return pl.DataFrame(
        [
            {"benchmark": "symmetry", "model": "m", "prompt": "", "method": "fill",
             "example": f"e{i}", "pattern": f"p{i}", "numerator": above, "denominator": 1.0,
             "partial": below, "missing": False, **HEADLINE}
            for i, (above, below) in enumerate(values)
        ]
    )  # fmt: skip


NONE = pl.DataFrame(schema={"example": pl.String, "cluster": pl.String})


def test_patterns_that_are_all_alike_have_no_cluster_interval():
    (same,) = an.clusters(parts([(0.0, 1.0)] * 4), NONE)
    assert (same.value, same.interval, same.n) == (0, None, 4)
    (other,) = an.clusters(parts([(0.0, 1.0), (1.0, 1.0), (0.0, 1.0)]), NONE)
    assert other.interval.low < other.value < other.interval.high
    assert other.interval.kind == "cluster bootstrap"


def test_whole_patterns_are_drawn():
    draw = np.random.default_rng(2)
    values = draw.random((17, 2))
    rows = parts(values.tolist()).with_columns(
        denominator=pl.Series(values[:, 1]), pattern=pl.Series([f"P{i % 7}" for i in range(17)])
    )
    (found,) = an.clusters(rows, NONE)
    sums = [values[i::7].sum(axis=0) for i in range(7)]
    generator = np.random.Generator(np.random.PCG64(hash_key(0, "bootstrap", "")))
    ratios = []
    for _ in range(2000):
        above, below = sum(sums[i] for i in generator.integers(0, 7, size=7))
        ratios.append(100 * above / below)
    assert found.interval[:2] == pytest.approx(tuple(np.quantile(ratios, [0.025, 0.975])))
    assert (found.n, found.setting["drawn"]) == (7, "patterns")


def test_partial_scores_that_are_all_alike_have_wilsons():
    (found,) = an.partial(parts([(0.0, 1.0)] * 4))
    assert found.interval.kind == "wilson"
    assert found.interval[:2] == pytest.approx([100 * bound for bound in wilson(4, 4)])
