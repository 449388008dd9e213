"""What a contract refuses, and that a file appears whole or not at all."""

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.schema import TAUGHT, ContractError


def taught(**changes: list[object]) -> pl.DataFrame:
    columns: dict[str, list[object]] = {
        "fact": ["b", "a"],
        "relation": ["P36", "P36"],
        "subject": ["Q2", "Q1"],
        "object": ["Q4", "Q3"],
        "taught": [True, False],
    }
    return pl.DataFrame({**columns, **changes})


def test_write_sorts_by_key_and_read_gives_it_back(tmp_path):
    schema.write(taught(), TAUGHT, tmp_path / "t.parquet", {"seed": 3})
    frame = schema.read(tmp_path / "t.parquet", TAUGHT)
    assert frame["fact"].to_list() == ["a", "b"]
    assert schema.provenance(tmp_path / "t.parquet") == {"contract": "TAUGHT", "seed": 3}


def test_row_and_column_order_do_not_change_the_bytes(tmp_path):
    schema.write(taught(), TAUGHT, tmp_path / "1.parquet")
    schema.write(taught().reverse().select(sorted(TAUGHT.columns)), TAUGHT, tmp_path / "2.parquet")
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (taught().drop("taught"), r"missing columns \['taught'\]"),
        (taught().with_columns(x=1), r"surplus columns \['x'\]"),
        (taught(taught=[1, 0]), "column 'taught' is Int64, expected Boolean"),
        (taught(fact=["a", "a"]), r"key \('fact',\) is not unique \(2 rows\), first 0: fact='a'"),
        (taught(subject=["Q1", None]), "column 'subject' is null in row 1: fact='a'"),
        (taught().clear(), "no rows"),
    ],
)
def test_a_broken_contract_names_column_and_row_and_writes_nothing(tmp_path, frame, message):
    with pytest.raises(ContractError, match=message):
        schema.write(frame, TAUGHT, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_nan_is_refused(tmp_path):
    row = {"paper": ["p"], "table": ["t"], "row": ["r"], "column": ["c"], "n": [1]}
    numbers = {"value": [float("nan")], "low": [0.0], "high": [1.0], "published": [1.0]}
    with pytest.raises(ContractError, match="column 'value' is NaN"):
        schema.write(pl.DataFrame({**row, **numbers}), schema.TABLE, tmp_path / "t.parquet")


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def interrupted() -> None:
        with schema.atomic(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_reading_something_else_names_the_file(tmp_path):
    (tmp_path / "t.parquet").write_text("no parquet")
    with pytest.raises(ContractError, match=r"t\.parquet \(TAUGHT\): not a readable parquet file"):
        schema.read(tmp_path / "t.parquet", TAUGHT)
    with pytest.raises(ContractError, match="no such file"):
        schema.read(tmp_path / "none.parquet", TAUGHT)
