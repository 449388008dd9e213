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


def test_several_masks_are_better_only_because_of_soft_prompts(tables):
    rows = tables["configurations"]
    manual = rows.filter(pl.col("template").str.starts_with("manual"), pooling="mean")
    wanted = {"multiple": (13.94, 32.18, 11.98, 23.33), "single": (14.46, 33.02, 12.85, 24.12)}
    found = memorizing.averages(manual, "masks", memorizing.WEIGHTINGS[0])
    for value, numbers in wanted.items():
        row = found.filter(masks=value).row(0, named=True)
        assert [row[metric] for metric in METRICS] == pytest.approx(numbers, abs=0.0101)


def kinds(rows):
    """Return the rows of C.2 with `kind`: soft or manual templates."""
    kind = pl.when(pl.col("template").str.starts_with("soft")).then(pl.lit("soft"))
    return rows.with_columns(kind=kind.otherwise(pl.lit("manual")))


def maxima(rows):
    """Return task, model, kind, metric and maximum over configurations: the oracle choice."""
    best = kinds(rows).group_by("task", "model", "kind").agg(pl.col(METRICS).max())
    return best.unpivot(
        index=["task", "model", "kind"], on=list(METRICS), variable_name="metric"
    ).sort("task", "model", "kind", "metric")


def unshifted(rows):
    """Return C.2 with TP's column of roberta-large moved up by one row, as intended.

    Its first row repeats the adjacent last row of roberta-base; its real last row is lost.
    """
    shifted = (pl.col("task") == "TP") & (pl.col("model") == "roberta-large")
    # the paper's order: masks m, s; pooling first, max, mean; soft BCE, NLL, m1, m2, m3
    own = rows.filter(shifted).sort(
        "masks", "pooling", ~pl.col("template").str.starts_with("soft"), "loss", "template"
    )
    moved = own.with_columns(pl.col(METRICS).shift(-1)).head(own.height - 1)
    return pl.concat([rows.filter(~shifted), moved])


def needs_several(rows):
    """Return each (task, model, kind) whose four maxima no single configuration attains."""
    at_most = [pl.col(m) == pl.col(m).max() for m in METRICS]
    groups = kinds(rows).group_by("task", "model", "kind")
    return [key for key, group in groups if not group.filter(pl.all_horizontal(at_most)).height]


def agreeing(tables, rows):
    ours = maxima(rows).rename({"kind": "template", "value": "maximum"})
    cells = tables["memorizing"].filter(pl.col("model") != "frequency-baseline")
    cells = cells.filter(pl.col("value").is_not_null())
    both = cells.join(ours, on=["task", "model", "template", "metric"])
    close = (pl.col("value") - pl.col("maximum")).abs() <= 0.0501
    single = ~(pl.col("task").is_in(["DM", "RG"]) & (pl.col("metric") == "MRRa"))
    return both.filter(single).height, both.filter(single & close).height


def test_table_4_is_the_maximum_of_every_metric_in_204_of_216_cells(tables):
    assert agreeing(tables, tables["configurations"]) == (216, 204)


def test_210_cells_agree_once_a_shifted_column_is_moved_back(tables):
    assert agreeing(tables, unshifted(tables["configurations"])) == (216, 210)


def test_40_of_60_columns_mix_configurations(tables):
    rows = tables["configurations"].with_columns(pl.col("MRRa").fill_null(pl.col("MRR")))
    assert len(needs_several(rows)) == 40


def test_some_printed_rows_imply_ties(tables):
    rows = tables["configurations"]
    assert rows.height == 684
    assert rows.filter(pl.col("MRR") < pl.col("R@1")).height == 37
    bound = pl.col("R@1") + (pl.col("R@5") - pl.col("R@1")) / 5
    assert rows.filter(pl.col("MRR") < bound).height == 49
    assert rows.filter(pl.col("R@5") < pl.col("R@1")).height == 1


def test_printed_rates_are_fractions_of_the_number_of_items(tables):
    def misfits(task, n):
        cells = tables["configurations"].filter(task=task).select("R@1", "R@5").unpivot()["value"]
        return sum(abs(round(v * n / 100) * 100 / n - v) > 0.00501 for v in cells)

    assert misfits("TP", 8789) == 0
    assert all(misfits("TP", n) > 40 for n in (8839, 8769, 500))
    assert [misfits(t, n) for t, n in (("SCO", 701), ("SPO", 39), ("DM", 30), ("RG", 28))] == [
        0
    ] * 4


def test_table_6_averages_are_means_of_the_six_rules(tables):
    rows = tables["reasoning"]
    for premise, mean in (("NO", 13.6), ("IM", 82.8), ("EX", 97.1)):
        rules = rows.filter((pl.col("premise") == premise) & (pl.col("rule") != "average"))
        assert rules["accuracy"].mean() == pytest.approx(mean, abs=0.051)
