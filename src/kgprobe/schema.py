"""Read and write parquet files under their column contracts; nothing else reads or writes them.

A file under its final name is complete and obeys its contract: `write` first checks columns,
dtypes, missing values and the key, writes to a temporary file next to the target, and renames it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe.contracts import CANDIDATES as CANDIDATES
from kgprobe.contracts import CHOICES as CHOICES
from kgprobe.contracts import CHOSEN as CHOSEN
from kgprobe.contracts import CLAIMS as CLAIMS
from kgprobe.contracts import CONTENT_FREE as CONTENT_FREE
from kgprobe.contracts import COVERAGE as COVERAGE
from kgprobe.contracts import EXAMPLES as EXAMPLES
from kgprobe.contracts import FACTS as FACTS
from kgprobe.contracts import FILL_GOLDS as FILL_GOLDS
from kgprobe.contracts import FILLS as FILLS
from kgprobe.contracts import FUNNEL as FUNNEL
from kgprobe.contracts import ITEMS as ITEMS
from kgprobe.contracts import JUDGED as JUDGED
from kgprobe.contracts import OUTCOMES as OUTCOMES
from kgprobe.contracts import PREMISE_RANKS as PREMISE_RANKS
from kgprobe.contracts import PROBED as PROBED
from kgprobe.contracts import PROMPT_ORIGINS as PROMPT_ORIGINS
from kgprobe.contracts import PROMPTS as PROMPTS
from kgprobe.contracts import RANKS as RANKS
from kgprobe.contracts import REASON_RANKS as REASON_RANKS
from kgprobe.contracts import RESULTS as RESULTS
from kgprobe.contracts import SCORES as SCORES
from kgprobe.contracts import SOFT_CURVES as SOFT_CURVES
from kgprobe.contracts import SOFT_RANKS as SOFT_RANKS
from kgprobe.contracts import STATEMENTS as STATEMENTS
from kgprobe.contracts import SWEEPS as SWEEPS
from kgprobe.contracts import TOPS as TOPS
from kgprobe.contracts import TRAINED_ON as TRAINED_ON
from kgprobe.contracts import TYPES as TYPES
from kgprobe.contracts import Contract as Contract
from kgprobe.files import atomic as atomic

METADATA_KEY = b"kgprobe"
ROW_GROUP = 1 << 17


class ContractError(ValueError):
    """A frame or file violates its contract; the message names file, column and first bad row."""


def check(frame: pl.DataFrame, contract: Contract, path: str | Path = "(in memory)") -> None:
    """Raise ContractError unless `frame` obeys `contract`.

    Checks columns, dtypes, emptiness, missing values, non-finite numbers (in every contract),
    numbers below 1 (in its `positive` columns), and the uniqueness of the key.
    """
    where = f"{path} ({contract.name})"
    expected = list(contract.columns)
    if set(frame.columns) != set(expected):
        missing = [c for c in expected if c not in frame.columns]
        surplus = [c for c in frame.columns if c not in expected]
        raise ContractError(f"{where}: missing columns {missing}, surplus columns {surplus}")
    for column, dtype in contract.columns.items():
        if frame.schema[column] != dtype:
            raise ContractError(
                f"{where}: column '{column}' is {frame.schema[column]}, expected {dtype}"
            )
    if frame.height == 0 and not contract.may_be_empty:
        raise ContractError(f"{where}: no rows; at least one is expected")
    for column in expected:
        values = frame[column]
        if column not in contract.nullable and values.null_count():
            _refuse(frame, values.is_null(), f"{where}: column '{column}' is null")
        if values.dtype.is_float() and not values.is_finite().all():
            # null stays null: is_finite of null is null
            what = "NaN" if values.is_nan().any() else "infinite"
            wrong = values.is_nan() if what == "NaN" else values.is_infinite()
            _refuse(frame, wrong, f"{where}: column '{column}' is {what}")
        if column in contract.positive and (values < 1).any():
            _refuse(frame, values < 1, f"{where}: column '{column}' is not above 0")
    repeated = frame.select(contract.key).is_duplicated()
    if repeated.any():
        row = frame.with_row_index("_row").filter(repeated).row(0, named=True)
        raise ContractError(
            f"{where}: key {contract.key} is not unique ({int(repeated.sum())} rows), "
            f"first {_format_row(row)}"
        )


def cast_columns(frame: pl.DataFrame, contract: Contract) -> pl.DataFrame:
    """Return the contract's columns, cast to its dtypes."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in contract.columns.items())


def write(
    frame: pl.DataFrame,
    contract: Contract,
    path: str | Path,
    provenance: Mapping[str, object] | None = None,
) -> None:
    """Check `frame`, sort it by the contract's key and write it as parquet at `path`.

    `provenance` (JSON values) is stored in the file's metadata. It must not hold times or thread
    counts, because two runs with the same inputs must give the same bytes.
    """
    check(frame, contract, path)
    write_sorted([frame.sort(list(contract.key), maintain_order=True)], contract, path, provenance)


def write_sorted(
    parts: Iterable[pl.DataFrame],
    contract: Contract,
    path: str | Path,
    provenance: Mapping[str, object] | None = None,
) -> None:
    """Write frames like `write`; the frames must follow each other in the order of the key.

    At most one frame and one row group are held in memory, and the bytes do not depend on how rows
    are split into frames. Raises ContractError, and leaves no file, if a frame violates the
    contract or does not come after the previous one.
    """
    metadata = json.dumps(
        {"contract": contract.name, **(provenance or {})}, sort_keys=True, ensure_ascii=True
    )
    columns = list(contract.columns)
    waiting = pl.DataFrame(schema=dict(contract.columns))
    like = waiting.to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    like = like.with_metadata({METADATA_KEY: metadata.encode()})
    last: tuple[object, ...] = ()
    with atomic(path) as temporary, pq.ParquetWriter(temporary, like, compression="zstd") as file:

        def put(frame: pl.DataFrame) -> None:
            rows = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            file.write_table(rows.replace_schema_metadata(like.metadata), ROW_GROUP)

        for part in parts:
            check(part, replace(contract, may_be_empty=True), path)
            keys = part.select(contract.key)
            if part.height and last and keys.row(0) <= last:
                raise ContractError(
                    f"{path} ({contract.name}): {keys.row(0)} of key {contract.key} comes after "
                    f"{last}; parts must follow each other in the order of the key"
                )
            last = keys.row(-1) if part.height else last
            waiting = pl.concat([waiting, part.select(columns)])
            whole = waiting.height - waiting.height % ROW_GROUP
            if whole:
                put(waiting.head(whole))
                waiting = waiting.slice(whole)
        if not last:
            check(waiting, contract, path)
        if waiting.height:
            put(waiting)


def read(path: str | Path, contract: Contract) -> pl.DataFrame:
    """Read the parquet file at `path` and check that it obeys `contract`."""
    if not Path(path).is_file():
        raise ContractError(f"{path} ({contract.name}): no such file")
    try:
        frame = pl.read_parquet(path, glob=False)  # brackets in a path are literal
    # polars panics on some damaged files
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ContractError(
            f"{path} ({contract.name}): not a readable parquet file: {error}"
        ) from error
    check(frame, contract, path)
    return frame.select(list(contract.columns))


def provenance(path: str | Path) -> dict[str, object]:
    """Return the provenance that `write` stored in the metadata of a parquet file. Raises
    ContractError for a file that is not parquet."""
    try:
        # pyarrow takes a relative path that begins with "name:" for a URL
        metadata = pq.read_schema(Path(path).absolute()).metadata or {}
        return dict(json.loads(metadata.get(METADATA_KEY, b"{}")))
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno:  # of the file system, with the file's name
            raise
        raise ContractError(f"{path}: not a readable parquet file: {error}") from error


def _refuse(frame: pl.DataFrame, wrong: pl.Series, what: str) -> None:
    """Raise ContractError with the first row that is `wrong`."""
    row = frame.with_row_index("_row").filter(wrong.fill_null(False)).row(0, named=True)
    raise ContractError(f"{what} in row {_format_row(row)}")


def _format_row(row: Mapping[str, object]) -> str:
    index = row.get("_row")
    values = ", ".join(f"{k}={v!r}" for k, v in row.items() if k != "_row")
    return f"{index}: {values[:300]}"
