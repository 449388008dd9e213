"""What changed between two snapshots, row by row and per relation or class.

    python -m kgprobe.sources.sparql.drift data/wikidata/2026-10 data/wikidata/2026-11
    python -m kgprobe.sources.sparql.drift old/facts.parquet new/facts.parquet

A row is known by its identity: the columns that the query's header names, or the key of the file's
contract. A row with the same identity and other values is changed.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from kgprobe import schema
from kgprobe.schema import METADATA_KEY

KINDS = ("added", "removed", "changed")
SUMMARY = ("table", "group", "before", "after", *KINDS)


class DriftError(ValueError):
    """The two snapshots cannot be compared; the message says why."""


@dataclass(frozen=True)
class Table:
    """One table of a snapshot: rows, the columns that identify a row, and those that group them."""

    name: str
    frame: pl.DataFrame
    identity: tuple[str, ...]
    group: tuple[str, ...]


def compare(before: Table, after: Table) -> pl.DataFrame:
    """One row per difference: group, change, the identity's columns, values before and after.

    Values are JSON of the other columns (several where an identity has several rows). Raises
    DriftError when the columns or the identities differ.
    """
    if before.identity != after.identity:
        raise DriftError(
            f"{before.name}: rows are identified by {before.identity} and by {after.identity}"
        )
    shared = [c for c in before.frame.columns if c in after.frame.columns]
    if missing := [c for c in before.identity if c not in shared]:
        raise DriftError(f"{before.name}: no column {missing} in both tables")
    identity = list(before.identity)
    others = [c for c in shared if c not in identity]
    joined = _gathered(before.frame, identity, others, "before").join(
        _gathered(after.frame, identity, others, "after"),
        on=identity,
        how="full",
        coalesce=True,
        nulls_equal=True,
    )
    change = (
        pl.when(pl.col("before").is_null())
        .then(pl.lit("added"))
        .when(pl.col("after").is_null())
        .then(pl.lit("removed"))
        .otherwise(pl.lit("changed"))
    )
    differing = joined.filter(pl.col("before").ne_missing(pl.col("after")))
    return differing.select(
        _group(before).alias("group"), change.alias("change"), *identity, "before", "after"
    ).sort("group", "change", *identity)


def _gathered(
    frame: pl.DataFrame, identity: list[str], others: list[str], name: str
) -> pl.DataFrame:
    """One row per identity with all its other values as one JSON text."""
    values = pl.struct(others).struct.json_encode() if others else pl.lit("{}")
    return (
        frame.select(*identity, values.alias(name))
        .group_by(identity)
        .agg(pl.col(name).unique().sort().str.join(" | "))
    )


def _group(table: Table) -> pl.Expr:
    grouping = [c for c in table.group if c in table.identity]
    if not grouping:  # one relation or class a table: its parameter says which
        return pl.lit(table.name.partition("@")[2])
    return pl.concat_str(grouping, separator=" ")


def summary(before: Table, after: Table, differences: pl.DataFrame) -> pl.DataFrame:
    """Rows before and after, and differences by kind, for every group: the columns of SUMMARY."""
    sizes = [
        table.frame.group_by(_group(table).alias("group")).agg(pl.len().cast(pl.Int64).alias(name))
        for name, table in (("before", before), ("after", after))
    ]
    counts = differences.group_by("group").agg(
        (pl.col("change") == kind).sum().cast(pl.Int64).alias(kind) for kind in KINDS
    )
    joined = sizes[0].join(sizes[1], on="group", how="full", coalesce=True)
    joined = joined.join(counts, on="group", how="left")
    return (
        joined.with_columns(pl.lit(before.name).alias("table"), pl.col("group").fill_null(""))
        .fill_null(0)
        .select(SUMMARY)
        .sort("group")
    )


def read_tables(path: str | Path) -> dict[str, Table]:
    """The tables of a snapshot folder, of one pull's folder, or of one parquet file, by name."""
    path = Path(path)
    if path.is_file():
        return {path.stem: _table(path.stem, path)}
    if (path / "result.parquet").is_file():
        return {path.name: _table(path.name, path / "result.parquet")}
    found = {p.parent.name: p for p in sorted(path.glob("*/result.parquet"))}
    if not found:
        raise DriftError(f"{path}: neither a parquet file nor a folder of pulls")
    return {name: _table(name, file) for name, file in found.items()}


def _table(name: str, path: Path) -> Table:
    frame = pl.read_parquet(path)
    metadata = pq.read_schema(path).metadata or {}
    told: dict[str, Any] = json.loads(metadata.get(METADATA_KEY, b"{}"))
    contract = getattr(schema, str(told.get("contract", "")), None)
    if contract is not None:
        group = ("relation",) if "relation" in contract.key else ()
        return Table(name, frame, tuple(contract.key), group)
    identity = tuple(told.get("identity", ())) or tuple(frame.columns)
    return Table(name, frame, identity, tuple(told.get("group", ())))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the drift, and writes every difference where `--rows` says."""
    parser = argparse.ArgumentParser(
        prog="python -m kgprobe.sources.sparql.drift", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("before", help="folder of a snapshot or of one pull, or a parquet file")
    parser.add_argument("after", help="the same of a later time")
    parser.add_argument("--rows", help="parquet file for all differences")
    parser.add_argument("--examples", type=int, default=3, help="differences shown per kind")
    asked = parser.parse_args(arguments)
    try:
        old, new = read_tables(asked.before), read_tables(asked.after)
        if len(old) == len(new) == 1:  # two files may have two names
            old, new = {"": next(iter(old.values()))}, {"": next(iter(new.values()))}
        names = sorted(set(old) & set(new))
        drifts = [(old[n], new[n], compare(old[n], new[n])) for n in names]
    except DriftError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for where, alone in ((asked.before, set(old) - set(new)), (asked.after, set(new) - set(old))):
        if alone:
            print(f"only in {where}: {', '.join(sorted(alone))}")
    print(_report(drifts, asked.examples))
    if asked.rows and drifts:
        with schema.atomic(asked.rows) as temporary:
            pl.concat([_rows(before, d) for before, _, d in drifts]).write_parquet(temporary)
    return 0


def _rows(table: Table, differences: pl.DataFrame) -> pl.DataFrame:
    """Differences with their identity as one text, so that those of all tables fit together."""
    row = pl.concat_str(table.identity, separator=" ", ignore_nulls=True).alias("row")
    name = pl.lit(table.name).alias("table")
    return differences.select(name, "group", "change", row, "before", "after")


def _report(drifts: list[tuple[Table, Table, pl.DataFrame]], examples: int) -> str:
    """The summary as text: groups that differ, a total for each table, and some examples."""
    lines = [_line(SUMMARY)]
    for before, after, differences in drifts:
        table = summary(before, after, differences)
        moved = table.filter(pl.sum_horizontal(KINDS) > 0)
        lines += [_line(row) for row in moved.rows()]
        total = table.select(pl.col(c).sum() for c in SUMMARY[2:]).row(0)
        lines.append(_line((before.name, "(all)", *total)))
        for kind in KINDS:
            for row in differences.filter(pl.col("change") == kind).head(examples).to_dicts():
                what = " ".join(str(row[c]) for c in before.identity)
                values = {
                    "added": row["after"],
                    "removed": row["before"],
                    "changed": f"{row['before']} -> {row['after']}",
                }[kind]
                lines.append(f"    {kind}: {what} {values}")
    return "\n".join(lines)


def _line(cells: Sequence[object]) -> str:
    name, group, *numbers = cells
    return f"{name!s:28} {group!s:44} " + " ".join(f"{n!s:>9}" for n in numbers)


if __name__ == "__main__":
    sys.exit(main())
