"""RESULTS and their views: dimensions are columns, a table is a selection without collisions."""

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.metrics.intervals import Interval
from kgprobe.tables import results, views
from kgprobe.tables.report import grid, summary
from kgprobe.tables.results import Number
from kgprobe.tables.views import View, ViewError


def number(model="one", metric="accuracy", value=41.25, **more):
    given = {"benchmark": "b", "prompt": "templates", "method": "sentence", "n": 9} | more
    return Number(model=model, metric=metric, value=value, **given)


def view(**more):
    given = {"where": {"paper": ["bear"], "metric": ["accuracy"]}, "rows": ["model"]} | more
    return View("mine", "Mine", **given)


@pytest.mark.parametrize("place", ["rows", "columns"])
def test_an_unknown_dimension_is_reported_with_the_nearest_one(place):
    with pytest.raises(ViewError, match=r"view mine: unknown dimension 'modell' .did you mean mod"):
        view(**{place: ["modell"]})
    with pytest.raises(ViewError, match="unknown dimension 'xyzzy'; valid: paper, benchmark, "):
        view(where={"xyzzy": ["a"]})


def test_two_numbers_in_one_cell_are_an_error_with_their_difference():
    frame = results.frame("bear", [number(), number(setting={"template": 1}, slice="1:1")])
    with pytest.raises(ViewError, match="slice '' and '1:1', template '' and '1'; name it in"):
        view().of(frame)
    assert len(view(columns=["metric", "template", "slice"]).of(frame).cells) == 2
    alone = view(where={"metric": ["accuracy"], **views.PLAIN})
    assert [cell["value"] for cell in alone.of(frame).cells.values()] == [41.25]


def test_values_are_in_the_order_of_the_view_or_of_appearance():
    frame = results.frame("bear", [number(m, value=v) for v, m in enumerate(("b", "c", "a"))])
    assert [key for (key,) in view().of(frame).rows] == ["b", "c", "a"]
    chosen = view(where={"metric": ["accuracy"], "model": ["c", "b"]})
    assert [key for (key,) in chosen.of(frame).rows] == ["c", "b"]


def test_a_view_is_written_with_interval_fraction_and_printed_figure(tmp_path):
    own = number(interval=Interval(30, 52.25, "wilson"), numerator=3, denominator=8)
    own = own.but(published=40.0, source="Table 1")
    none = number("two", value=None, numerator=0, denominator=0)
    frame = results.frame("bear", [own, none, number("two", "MRR", 0.5)])
    shown = view(
        where={"metric": ["accuracy", "MRR"]}, digits={"MRR": 3}, words={("model", "two"): "2nd"}
    )
    views.write(shown, frame, tmp_path / "mine.tsv")
    lines = [line.split("\t") for line in (tmp_path / "mine.tsv").read_text().splitlines()]
    assert lines == [
        ["model", "accuracy", "MRR"],
        ["one", "41.2 (3/8) [30.0, 52.2], published 40", "-"],
        ["2nd", "undef (0/0)", "0.500"],
    ]


def test_numbers_rounded_to_zero_have_no_sign():
    row = results.frame("bear", [number(value=-0.04, interval=Interval(-0.02, 0.3, "wilson"))])
    assert views.text(row.row(0, named=True), 1) == "0.0 [0.0, 0.3]"
    assert grid.number(-0.04) == "0.0"
    assert grid.trace(row.row(0, named=True)).startswith("0.0 ")
    assert grid.number(-1234.56) == "-1,234.6"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([number(setting={"sead": 1})], r"accuracy: setting \['sead'\]; valid: alpha, bin"),
        ([number(published=1.0)], "a published figure needs its source"),
        ([number(), number()], r"key \('paper', 'benchmark'"),
        ([number(value=float("nan"))], "NaN"),
    ],
)
def test_an_incomplete_or_duplicate_number_is_refused(wrong, message):
    with pytest.raises((ValueError, schema.ContractError), match=message):
        results.frame("bear", wrong)


def test_further_choices_are_separate_columns():
    frame = results.frame("bear", [number(setting={"seed": 3, "k": 1}), number("two")])
    assert frame.select("k", "seed").rows() == [("1", "3"), ("", "")]
    assert frame.filter(results.plain())["model"].to_list() == ["two"]


def test_results_of_another_version_are_reported_and_kept(tmp_path, capsys):
    path, old = tmp_path / "bear.parquet", tmp_path / "old.parquet"
    schema.write(results.frame("bear", [number()]), schema.RESULTS, path)
    pl.read_parquet(path).drop("slice").with_columns(row=pl.lit("a | b")).write_parquet(old)
    before = old.read_bytes()
    with pytest.raises(schema.ContractError, match=r"old.parquet \(RESULTS\): .*slice"):
        results.read([path, old])
    assert summary.main([str(old)]) == 1
    said = capsys.readouterr().err.strip()
    assert "old.parquet (RESULTS)" in said
    assert len(said.splitlines()) == 1
    assert old.read_bytes() == before
    assert results.read([path]).height == 1
