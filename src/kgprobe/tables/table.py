"""TABLE frames: one printed number a row. Built from cells, written as TSV, pivoted for reading."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema


def cell(
    table: str,
    row: str,
    column: str,
    value: float,
    n: int,
    interval: tuple[float, float] | None = None,
    published: float | None = None,
    paper: str = "bear",
) -> dict[str, object]:
    """One number with its n, its 95 % interval (None: none applies) and the paper's figure."""
    low, high = interval or (None, None)
    return {
        "paper": paper,
        "table": table,
        "row": row,
        "column": column,
        "value": float(value),
        "n": int(n),
        "low": low,
        "high": high,
        "published": published,
    }


def build(cells: Iterable[dict[str, object]]) -> pl.DataFrame:
    """The TABLE frame of `cells`, checked, in the order given. Raises ContractError."""
    frame = pl.DataFrame(list(cells), schema=dict(schema.TABLE.columns))
    schema.check(frame, schema.TABLE)
    return frame


def read_all(paths: Iterable[str | Path]) -> dict[str, pl.DataFrame]:
    """TABLE frames by name, from files and from folders of files."""
    found = [
        file
        for path in map(Path, paths)
        for file in (sorted(path.glob("*.parquet")) if path.is_dir() else [path])
    ]
    return {file.stem: schema.read(file, schema.TABLE) for file in found}


def write_tsv(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a TABLE as tab-separated text: up to four decimals, nulls empty, sorted by its key."""
    ordered = frame.select(list(schema.TABLE.columns)).sort(list(schema.TABLE.key))
    lines = ["\t".join(ordered.columns)]
    lines += ["\t".join(_text(value) for value in row) for row in ordered.iter_rows()]
    with schema.atomic(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def columns_of(frame: pl.DataFrame, first: Sequence[str] = ()) -> list[str]:
    """The columns of a TABLE: those of `first` that occur, in that order, then the others."""
    present = frame["column"].unique(maintain_order=True).to_list()
    return [c for c in first if c in present] + [c for c in present if c not in first]


def lookup(frame: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """(row, column) -> value, n, low, high, published of a frame that holds one table.

    Raises ValueError when the frame holds several tables, whose rows would overwrite each other.
    """
    tables = frame.select("paper", "table").unique().rows()
    if len(tables) > 1:
        raise ValueError(f"lookup needs a single table, got {sorted(tables)}")
    keep = ("value", "n", "low", "high", "published")
    return {
        (row["row"], row["column"]): {name: row[name] for name in keep}
        for row in frame.iter_rows(named=True)
    }


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        text = f"{value:.4f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return str(value).replace("\t", " ").replace("\n", " ")
