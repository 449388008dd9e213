"""Published figures (resources/published): read tables, as text or by a schema; count decimals."""

from decimal import Decimal
from pathlib import Path

import polars as pl


def read_tsv(path: str | Path, schema: dict[str, type[pl.DataType]] | None = None) -> pl.DataFrame:
    """Read a table of published figures; without a schema all cells are text, as printed.

    Raises ValueError if the file is missing or its columns are not those of `schema`.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such table of published figures")
    text = pl.read_csv(path, separator="\t", infer_schema=False, quote_char=None, glob=False)
    if schema is None:
        return text
    if text.columns != list(schema):
        raise ValueError(f"{path}: columns {text.columns}, expected {list(schema)}")
    try:
        return text.cast(dict(schema))  # type: ignore[arg-type]
    except pl.exceptions.InvalidOperationError as error:
        raise ValueError(f"{path}: a cell is not a number: {error}") from error


def decimals(figure: float) -> int:
    """Return the decimals of a printed figure, at least one.

    >>> decimals(16.38), decimals(7.0)
    (2, 1)
    >>> decimals(0.00001), decimals(1e16)
    (5, 1)
    """
    exponent = Decimal(repr(float(figure))).as_tuple().exponent
    return max(1, -int(exponent))
