"""The printed tables of OntoProbe agree with one another as far as they do."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe.tables.ontoprobe import memorizing, values
from kgprobe.tables.ontoprobe.values import METRICS

FOLDER = Path(__file__).parents[2] / "resources" / "published"


@pytest.fixture(scope="module")
def tables():
    return values.published(FOLDER)


@pytest.mark.parametrize(
    ("figure", "value", "plain", "weighted"),
    [
        ("5", "multiple", (17.10, 34.61, 15.19, 25.55), (18.95, 37.37, 18.57, 27.74)),
        ("5", "single", (17.41, 34.01, 13.63, 23.64), (19.33, 36.71, 16.53, 25.43)),
        ("6", "first", (17.20, 35.01, 14.59, 24.82), (19.06, 37.83, 17.81, 26.74)),
        ("6", "max", (14.68, 26.98, 10.67, 18.73), (16.27, 29.28, 12.93, 20.26)),
        ("6", "mean", (19.88, 40.93, 17.98, 30.23), (22.08, 44.02, 21.92, 32.74)),
        ("7", "BCE", (22.79, 42.86, 18.95, 30.98), (22.79, 42.86, 18.95, 30.98)),
        ("7", "NLL", (20.66, 39.45, 18.00, 28.57), (20.66, 39.45, 18.00, 28.57)),
    ],
)
def test_figures_5_to_7_follow_from_the_printed_rows(tables, figure, value, plain, weighted):
    by = dict(zip("567", memorizing.COMPARED, strict=True))[figure]
    for weighting, wanted in zip(memorizing.WEIGHTINGS, (plain, weighted), strict=True):
        found = memorizing.averages(tables["configurations"], by, weighting)
        row = found.filter(pl.col(by) == value).row(0, named=True)
        for metric, number in zip(METRICS, wanted, strict=True):
            assert row[metric] == pytest.approx(number, abs=0.0101)


def test_printed_rates_are_fractions_of_the_number_of_items(tables):
    def misfits(task, n):
        cells = tables["configurations"].filter(task=task).select("R@1", "R@5").unpivot()["value"]
        return sum(abs(round(v * n / 100) * 100 / n - v) > 0.00501 for v in cells)

    assert misfits("TP", 8789) == 0
    assert all(misfits("TP", n) > 40 for n in (8839, 8769, 500))
    assert not any(misfits(t, n) for t, n in (("SCO", 701), ("SPO", 39), ("DM", 30), ("RG", 28)))


def test_table_6_averages_are_means_of_the_six_rules(tables):
    rows = tables["reasoning"]
    for premise, mean in (("NO", 13.6), ("IM", 82.8), ("EX", 97.1)):
        rules = rows.filter((pl.col("premise") == premise) & (pl.col("rule") != "average"))
        assert rules["accuracy"].mean() == pytest.approx(mean, abs=0.051)
