"""Numbers of earlier runs are stored unchanged and shown only for the same questions."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables import results
from kgprobe.tables.report import measured
from kgprobe.tables.results import Number

MODEL = {"benchmark": "b", "prompt": "templates", "method": "sentence"}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "b"
    place.mkdir()
    items = pl.DataFrame(
        {"item": ["i1", "i2"], "subject": ["France", "Italy"], "meta": ["{}", "{}"]}
    )
    items.write_parquet(place / "items.parquet")
    pl.DataFrame({"set": ["s"], "label": ["Paris"]}).write_parquet(place / "candidates.parquet")
    return place


def run(*models, value=40.0):
    found = [
        Number(metric="accuracy", model=m, value=value, n=50, interval=None, **MODEL)
        for m in models
    ]
    found += [Number(metric="weights complete", model=m, value=1.0) for m in models]
    return results.frame("bear", found)


def kept(path, found, folder, date="2026-01-02"):
    header = {"run": path.stem, "date": date, f"{measured.ASKED}b": measured.fingerprint(folder)}
    measured.write(path, measured.principal(found), header)
    return path


def names(section):
    return [row[0].text for row in section.grids[0].rows]


def test_a_round_trip_keeps_every_bit(tmp_path, folder):
    found = run("m", value=100 / 3)
    path = kept(tmp_path / "x.tsv", found, folder)
    again = measured.read(path)
    assert set(again.results["value"]) == set(found["value"]) == {100 / 3, 1.0}
    assert again.results.sort(pl.all()).equals(found.sort(pl.all()))
    assert again.header["questions of b"] == measured.fingerprint(folder)
    path.write_text(path.read_text().replace("\tmetric\t", "\tmeter\t"))
    with pytest.raises(measured.MeasuredError, match="columns are not"):
        measured.read(path)
    with pytest.raises(measured.MeasuredError, match="make measured RUN=y"):
        measured.read(tmp_path / "y.tsv")


def test_a_finished_run_is_stored_with_its_questions(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "results/mine"
    (place / "benchmarks").mkdir(parents=True)
    folder = folder.rename(place / "benchmarks/b")
    schema.write(run("m"), schema.RESULTS, place / "tables/bear.parquet")
    (tmp_path / "resources/measured").mkdir(parents=True)
    kept = measured.read(measured.keep(place, "make run"))
    assert kept.results["metric"].to_list() == ["weights complete", "accuracy"]
    assert kept.header["questions of b"] == measured.fingerprint(folder)
    assert (kept.header["run"], kept.header["command"]) == ("mine", "make run")


def test_a_fingerprint_does_not_depend_on_the_name_of_a_role(folder):
    path = folder / "examples.parquet"
    hashes = []
    for role in ("two_up", "two_hop", "hop1"):
        pl.DataFrame({"example": ["e"], "role": [role]}).write_parquet(path)
        hashes.append(measured.fingerprint(folder))
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_fingerprint_does_not_depend_on_question_order(folder):
    before = measured.fingerprint(folder)
    path = folder / "items.parquet"
    frame = pl.read_parquet(path)
    frame.reverse().with_columns(meta=pl.lit('{"sitelinks": 3}')).write_parquet(path)
    assert measured.fingerprint(folder) == before
    for column, value in (("subject", "Spain"), ("item", "i3")):
        changed = frame.with_columns(
            pl.when(pl.int_range(2) == 0).then(pl.lit(value)).otherwise(column).alias(column)
        )
        changed.write_parquet(path)
        assert measured.fingerprint(folder) != before
    frame.write_parquet(path)
    assert measured.fingerprint(folder) == before
    pl.DataFrame({"set": ["s"], "label": ["Rome"]}).write_parquet(folder / "candidates.parquet")
    assert measured.fingerprint(folder) != before


def test_earlier_models_are_listed_with_those_of_the_run(tmp_path, folder):
    path = kept(tmp_path / "x.tsv", run("old", "new", "control-causal"), folder)
    shown = measured.section(run("new", value=50.0), [folder], [path])
    # neither the run's own model again nor a control model
    assert names(shown) == ["new", "old (measured 2026-01-02)"]
    assert [row[1].text for row in shown.grids[0].rows] == ["50.0", "40.0"]
    assert shown.grids[-1].rows[0][0].text == "x"


def test_other_questions_are_named_and_the_same_ones_come_first(tmp_path, folder):
    path = kept(tmp_path / "x.tsv", run("old", value=1.0), folder)
    frame = pl.read_parquet(folder / "items.parquet")
    frame.head(1).write_parquet(folder / "items.parquet")
    shown = measured.section(run("new"), [folder], [path])
    assert names(shown) == ["new", "old (other questions, measured 2026-01-02)"]
    newer = kept(tmp_path / "y.tsv", run("old", value=2.0), folder, "2026-02-03")
    shown = measured.section(run("new"), [folder], [path, newer])
    assert names(shown) == ["new", "old (measured 2026-02-03)"]
    assert not list(measured.section(run("new"), [folder.with_name("c")], [path]).tables)


def test_settings_of_one_model_are_distinguished(tmp_path, folder):
    both = run("old")
    corrected = both.filter(metric="accuracy").with_columns(
        aggregation=pl.lit("prior"), value=pl.lit(60.0)
    )
    path = kept(tmp_path / "x.tsv", pl.concat([both, corrected]), folder)
    (grid, _) = measured.section(run("new"), [folder], [path]).grids
    assert [head for head in grid.heads if head in ("model", "aggregation")] == [
        "model",
        "aggregation",
    ]
    rows = {tuple(cell.text for cell in row) for row in grid.rows}
    old = "old (measured 2026-01-02)"
    assert {row[1:] for row in rows if row[0] == old} == {
        ("–", "40.0"), ("prior-corrected (assumes balance)", "60.0"),
    }  # fmt: skip


def test_a_model_keeps_its_sign(tmp_path, folder):
    found = run("old").with_columns(
        value=pl.when(pl.col("metric") == "weights complete").then(0.0).otherwise("value")
    )
    path = kept(tmp_path / "x.tsv", found, folder)
    shown = measured.section(run("new"), [folder], [path])
    (row,) = [row for row in shown.grids[0].rows if row[0].text.startswith("old")]
    assert "(!)" in row[1].text + row[0].text


def test_only_principal_numbers_are_stored(folder):
    own = run("m")
    number = replace(Number(metric="accuracy", model="m", value=1.0, n=5, **MODEL), group="P36")
    rest = results.frame("bear", [number, number.but(metric="MRR")])
    found = measured.principal(pl.concat([own, rest]))
    assert set(found.select("group", "metric").rows()) == {
        ("", "accuracy"), ("", "weights complete"), ("P36", "accuracy"),
    }  # fmt: skip
