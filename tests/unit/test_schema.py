"""Schema validation errors, and atomic writes of files."""

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.schema import TRAINED_ON, Contract, ContractError


def trained_on(**changes: list[object]) -> pl.DataFrame:
    columns: dict[str, list[object]] = {
        "fact": ["b", "a"], "relation": ["P36", "P36"], "subject": ["Q2", "Q1"],
        "object": ["Q4", "Q3"], "trained_on": [True, False],
    }  # fmt: skip
    return pl.DataFrame({**columns, **changes})


def test_write_sorts_by_key_and_round_trips(tmp_path):
    schema.write(trained_on(), TRAINED_ON, tmp_path / "t.parquet", {"seed": 3})
    assert schema.read(tmp_path / "t.parquet", TRAINED_ON)["fact"].to_list() == ["a", "b"]
    assert schema.provenance(tmp_path / "t.parquet") == {"contract": "TRAINED_ON", "seed": 3}


def test_brackets_in_a_folder_name_are_no_pattern(tmp_path):
    path = tmp_path / "copy [2]" / "t.parquet"
    schema.write(trained_on(), TRAINED_ON, path)
    assert schema.read(path, TRAINED_ON).height == 2


def test_row_and_column_order_do_not_change_the_bytes(tmp_path):
    schema.write(trained_on(), TRAINED_ON, tmp_path / "1.parquet")
    schema.write(
        trained_on().reverse().select(sorted(TRAINED_ON.columns)),
        TRAINED_ON,
        tmp_path / "2.parquet",
    )
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (trained_on().drop("trained_on"), r"missing columns \['trained_on'\]"),
        (trained_on().with_columns(x=1), r"surplus columns \['x'\]"),
        (trained_on(trained_on=[1, 0]), "column 'trained_on' is Int64, expected Boolean"),
        (
            trained_on(fact=["a", "a"]),
            r"key \('fact',\) is not unique \(2 rows\), first 0: fact='a'",
        ),
        (trained_on(subject=["Q1", None]), "column 'subject' is null in row 1: fact='a'"),
        (trained_on().clear(), "no rows"),
    ],
)
def test_a_schema_violation_names_column_and_row_and_writes_nothing(tmp_path, frame, message):
    with pytest.raises(ContractError, match=message):
        schema.write(frame, TRAINED_ON, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_nan_is_refused(tmp_path):
    row = pl.DataFrame(row_of(schema.RESULTS), schema=dict(schema.RESULTS.columns))
    row = row.with_columns(value=float("nan"))
    with pytest.raises(ContractError, match="column 'value' is NaN"):
        schema.write(row, schema.RESULTS, tmp_path / "t.parquet")


def row_of(contract: schema.Contract) -> dict[str, list[object]]:
    """Return a valid row: texts "x", lists empty, numbers 1."""
    made: dict[str, list[object]] = {}
    for name, dtype in contract.columns.items():
        if isinstance(dtype, pl.List):
            made[name] = [[]]
        else:
            made[name] = ["x" if dtype == pl.String else dtype == pl.Boolean or 1]
    return made


#: columns of model outputs, and of counts and ranks, which begin at 1
MEASURED = {
    "SCORES": ("sum answer_sum continuation_sum", "count"),
    "RANKS": ("score", "best worst in_order tokens"),
    "TOPS": ("score", "place"),
    "FILLS": ("logprob", "rank"),
    "FILL_GOLDS": ("logprob", "masks best worst"),
    "CHOSEN": ("margin", ""),
    "SOFT_RANKS": ("score", "best worst in_order tokens"),
    "SOFT_CURVES": ("training dev", ""),
    "REASON_RANKS": ("score", "best worst in_order"),
    "PREMISE_RANKS": ("score", "best worst in_order"),
    "OUTCOMES": ("logprob", "best worst filtered_best filtered_worst"),
    "SWEEPS": ("value", "size n"),
    "JUDGED": ("hit margin", "rank_low rank_high"),
}


@pytest.mark.parametrize("name", MEASURED)
def test_numbers_of_models_are_finite_and_counts_above_zero(tmp_path, name):
    contract, path = getattr(schema, name), tmp_path / "t.parquet"
    floats, counts = (columns.split() for columns in MEASURED[name])
    types = dict(contract.columns)
    assert set(floats) == {c for c, t in types.items() if t == pl.Float64}
    assert set(counts) == contract.positive
    key = next(k for k in contract.key if types[k] == pl.String)
    rows = pl.concat([pl.DataFrame(row_of(contract), schema=types)] * 3)
    rows = rows.with_columns(pl.Series(key, ["a", "b", "c"]))
    schema.write(rows, contract, path)
    path.unlink()
    wrong = {float("nan"): "NaN", float("inf"): "infinite", float("-inf"): "infinite"}
    cases = [(c, value, what) for c in floats for value, what in wrong.items()]
    cases += [(c, v, "not above 0") for c in counts for v in (0, -1)]
    assert cases
    for column, value, what in cases:
        # a legal null before it hides nothing
        first = None if column in contract.nullable else 1
        bad = rows.with_columns(pl.Series(column, [first, value, value], dtype=types[column]))
        message = rf"t\.parquet \({name}\): column '{column}' is {what} in row 1: "
        with pytest.raises(ContractError, match=message):
            schema.write(bad, contract, path)
        assert not path.exists()


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


def test_a_write_over_a_folder_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="Is a directory"), schema.atomic(tmp_path / "file") as half:
        half.write_text("new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_error_names_the_file_for_every_library(tmp_path):
    """Polars raises its own error for this, without the file name."""
    message = "parquet: underlying IO error: No space left on device (os error 28)"

    def full() -> None:
        with schema.atomic(tmp_path / "file"):
            raise pl.exceptions.ComputeError(message)

    with pytest.raises(OSError, match=r"No space left on device \(.* make room") as error:
        full()
    assert error.value.filename == str(tmp_path / "file")


def test_reading_another_format_names_the_file(tmp_path):
    (tmp_path / "t.parquet").write_text("no parquet")
    with pytest.raises(
        ContractError, match=r"t\.parquet \(TRAINED_ON\): not a readable parquet file"
    ):
        schema.read(tmp_path / "t.parquet", TRAINED_ON)
    with pytest.raises(ContractError, match="no such file"):
        schema.read(tmp_path / "none.parquet", TRAINED_ON)
    with pytest.raises(ContractError, match=r"t\.parquet: not a readable parquet file"):
        schema.provenance(tmp_path / "t.parquet")


def test_damage_anywhere_in_a_file_is_reported_with_its_name(tmp_path):
    """A damaged footer raises other errors of pyarrow than a cut one, and polars may panic."""
    path = tmp_path / "t.parquet"
    schema.write(trained_on(), TRAINED_ON, path, {"seed": 3})
    whole, told = path.read_bytes(), []
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        for read in (schema.provenance, lambda path: schema.read(path, TRAINED_ON)):
            try:
                read(path)
            except ContractError as error:
                told.append(str(error))
    assert all(text.startswith(str(path)) for text in told)
    assert len(told) > len(whole) / 2


@pytest.mark.parametrize("cut", [1, 7, 1 << 17])
def test_sorted_parts_give_the_same_bytes_as_one_write(tmp_path, cut):
    rows = pl.DataFrame({"count": [f"{n:06}" for n in range(200)], "n": range(200)})
    contract = Contract("X", {"count": pl.String, "n": pl.Int64}, ("count",))
    schema.write(rows, contract, tmp_path / "whole", {"seed": 1})
    parts = [rows.slice(at, cut) for at in range(0, 200, cut)]
    schema.write_sorted(parts, contract, tmp_path / "parts", {"seed": 1})
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()
    for wrong in ([rows[50:], rows[:50]], [rows[:50], rows[49:]]):
        with pytest.raises(ContractError, match="must follow each other"):
            schema.write_sorted(wrong, contract, tmp_path / "wrong")
    with pytest.raises(ContractError, match="no rows"):
        schema.write_sorted([], contract, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()
