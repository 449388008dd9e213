"""Grids: views of RESULTS and other records arranged for reading, as the report prints them."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from kgprobe.contracts import RESULTS
from kgprobe.experiments import is_control
from kgprobe.tables.published import decimals
from kgprobe.tables.report import marks
from kgprobe.tables.views import View, fraction


@dataclass(frozen=True)
class Cell:
    """Content of a cell: `small` is printed below, `sort` sorts (None: last), `hint` is shown on
    hover.

    `n`: items behind a number, 0 for other cells. `trace`: a number and its dimensions in RESULTS,
    for `kgprobe trace`. `href`: another page of the report. `shade`: darkness, 0 to 100.
    """

    text: str
    small: str = ""
    sort: float | str | None = None
    hint: str = ""
    muted: bool = False
    n: int = 0
    trace: str = ""
    href: str = ""
    shade: float | None = None


@dataclass(frozen=True)
class Grid:
    """A printed table. `numeric` columns are right-aligned; the first column names the row."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: frozenset[int] = field(default_factory=frozenset)
    caption: str = ""


def number(value: float, digits: int = 1) -> str:
    """Format a number: thousands separated, no negative zero."""
    return f"{value:z,.{digits}f}"


def measured(cell: Mapping[str, Any], digits: int, few: bool = True) -> Cell:
    """Format a number of RESULTS with its mark and the printed one in brackets, its interval below
    and n on hover.

    `few`: whether it is marked if it is based on few rows (marks.few).
    """
    shown = number(cell["value"], digits) + (marks.few(cell, digits) if few else "")
    if (figure := cell["published"]) is not None:
        is_count = digits == 0 and float(figure).is_integer()
        shown += f" [{number(float(figure), 0 if is_count else decimals(figure))}]"
    below = ""
    if cell["low"] is not None:
        below = f"{number(cell['low'], digits)} to {number(cell['high'], digits)}"
    n = marks.size(cell)
    return Cell(shown, below, cell["value"], f"n = {n:,}", n=n)


def trace(row: Mapping[str, Any], digits: int = 1) -> str:
    """Return the `kgprobe trace` arguments that find a row of RESULTS: number and dimensions."""
    options = [f"-w {shlex.quote(f'{key}={row[key]}')}" for key in RESULTS.key if row[key]]
    return " ".join([f"{row['value']:z.{digits}f}", *options, "--exact"])


def text(value: object) -> Cell:
    """Create a cell of plain text or of a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(f"{value:,}", sort=float(value))
    shown = "" if value is None else str(value)
    return Cell(shown or "–", sort=shown.casefold(), muted=not shown)


def of_view(
    view: View,
    results: pl.DataFrame,
    few: bool = True,
    names: Mapping[tuple[str, str], Cell] | None = None,
    also: Callable[[Cell, Mapping[str, Any]], Cell] = lambda cell, _: cell,
    traced: bool = True,
) -> Grid:
    """Convert a view of RESULTS to a grid: value, printed figure, interval, n, and marks.

    `few`: whether numbers of few rows are marked, except in a view of counts; numbers over complete
    sources are not samples. `names`: (dimension, value) -> its row header, if the view's own words
    are not enough. `also`: a paper's change to a number's cell. `traced`: whether the numbers are
    in this run's RESULTS. Dimensions in rows that are constant are left out, except the model: a
    table always states who was asked.
    """
    printed, sign = view.of(results), marks.signs(results)

    def format_cell(cell: Mapping[str, Any] | None, digits: int) -> Cell:
        if cell is None or (cell["value"] is None and cell["denominator"] is None):
            return Cell("–" if cell is None else "undefined", muted=True)
        if cell["metric"] == "valid":
            return text("met" if cell["value"] else "not met")
        parts, value = "", cell["value"]
        # a value that is not a fraction may still have a denominator
        if None not in (cell["numerator"], cell["denominator"]):
            parts = fraction(cell)
        if value is None:
            return Cell("undef", parts)
        base = measured(cell, digits, few and view.usual > 0)
        small = "; ".join(filter(None, [parts, base.small]))
        command = trace(cell, digits) if traced else ""
        return also(replace(base, text=base.text + sign(cell), small=small, trace=command), cell)

    first = len(view.rows)
    values = [{key[i] for key in printed.rows} - {""} for i in range(first)]
    varied = [i for i in range(first) if len(values[i]) > (view.rows[i] != "model")]
    kept = varied or list(range(first))
    if len({tuple(key[i] for i in kept) for key in printed.rows}) < len(printed.rows):
        kept = [i for i in range(first) if i in kept or len({key[i] for key in printed.rows}) > 1]
    lines = printed.lines(format_cell)
    kept = [i for i in kept if any(line[i] for line in lines)] or kept[:1]
    rows = []
    for key, line in zip(printed.rows, lines, strict=True):
        words = [(names or {}).get((view.rows[i], key[i])) or text(line[i]) for i in kept]
        rows.append([*words, *line[first:]])
    heads = [printed.heads[i] for i in kept] + printed.heads[first:]
    return Grid(view.title, heads, rows, frozenset(range(len(kept), len(heads))), view.caption)


def funnel(frame: pl.DataFrame, of: str) -> Grid:
    """Tabulate FUNNEL of one benchmark, summed over relations, one row per step; `of` begins the
    title."""
    steps = frame.group_by("position", "step").agg(
        pl.col("relation").n_unique().alias("relations"),
        pl.col("rows_in").sum().alias("statements in"),
        pl.col("rows_out").sum().alias("statements out"),
        dropped=(pl.col("rows_in") - pl.col("rows_out")).sum(),
    )
    rows = steps.sort("position", "step").drop("position")
    rows = rows.with_columns(pl.col("step").str.replace_all("_", " "))
    return records(f"{of}: steps, all relations", rows.iter_rows(named=True))


def funnel_by_relation(frame: pl.DataFrame, titles: Mapping[str, str], of: str) -> Grid:
    """Tabulate FUNNEL of one benchmark by relation: rows in, rows kept, and the largest loss."""
    lost = pl.col("rows_in") - pl.col("rows_out")
    steps = frame.sort("position").group_by("relation").agg(
        pulled=pl.col("rows_in").first(), kept=pl.col("rows_out").last(),
        subjects=pl.col("subjects").last(), answers=pl.col("answers").last(),
        step=pl.col("step").get(lost.arg_max()).str.replace_all("_", " "), lost=lost.max(),
    )  # fmt: skip
    rows = []
    for row in sorted(steps.rows(named=True), key=lambda row: property_order(row["relation"])):
        step, most = row.pop("step"), row.pop("lost")
        worst = {"largest loss": f"{step} ({most:,})" if most else ""}
        rows.append({**row, "relation": titled(row["relation"], titles), **worst})
    return records(f"{of}: relation by relation", rows)


def records(title: str, rows: Iterable[Mapping[str, object]], caption: str = "") -> Grid:
    """Tabulate rows of values or cells; columns are in order of first appearance."""
    rows = list(rows)
    heads = list(dict.fromkeys(key for row in rows for key in row))
    whole = {i for i, key in enumerate(heads) if all(isinstance(r.get(key), int) for r in rows)}
    body = [[_short(row.get(key)) for key in heads] for row in rows]
    return Grid(title, heads, body, frozenset(whole), caption)


def of_rows(title: str, rows: pl.DataFrame) -> Grid:
    """Tabulate rows of RESULTS with the dimensions in which they differ: the data of a figure."""
    named = [name for name in RESULTS.key if rows[name].n_unique() > 1]
    numbers = [name for name in ("value", "low", "high", "n", "published")
               if rows[name].null_count() < rows.height]  # fmt: skip
    body = []
    for row in rows.rows(named=True):
        command = "" if row["value"] is None else trace(row)
        cells = [Cell(_format_figure(row[c]), "", row[c], muted=row[c] is None) for c in numbers]
        few = marks.few(row) if command else ""
        cells[0] = replace(cells[0], text=cells[0].text + few, n=row["n"], trace=command)
        body.append([*(text(row[name]) for name in named), *cells])
    numeric = frozenset(range(len(named), len(named) + len(numbers)))
    return Grid(title, [*named, *numbers], body, numeric)


def _format_figure(value: float | None) -> str:
    """Format a number of a figure with six digits, a count in full."""
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.6g}"


def filled_in(grids: Iterable[Grid]) -> list[Grid]:
    """Return the grids that have rows."""
    return [one for one in grids if one.rows]


def settings(title: str, config: Mapping[str, Any]) -> Grid:
    """Tabulate a nested mapping as rows of dotted key and value."""
    rows = [[Cell(key, sort=key), Cell(value, sort=value)] for key, value in _flat(config, "")]
    return Grid(title, ["key", "value"], rows)


def models(rows: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str], Cell]:
    """Return row headers for the models of a table, with kind and BOS policy in small print."""
    cells = {}
    for name, row in rows.items():
        notes = [row["kind"]] + ["control"] * is_control(row)
        notes += [f"BOS {row['bos']}"] if row["kind"] == "causal" else []
        notes += [] if row["dtype"] == "float32" else [f"{row['dtype']}, not exact"]
        notes += [f"{row['quantized']} weights"] if row.get("quantized") else []
        notes += ["adapter"] * bool(row.get("adapter"))
        cells["model", name] = Cell(name, ", ".join(notes), name.casefold())
    return cells


def titled(relation: str, titles: Mapping[str, str]) -> Cell:
    """Return a relation's name with its id in small print; only the id if it has no name."""
    name = titles.get(relation)
    return Cell(name, relation, name.casefold()) if name else text(relation)


def with_id(relation: str, titles: Mapping[str, str]) -> str:
    """Return a relation's name with its id in brackets; only the id if it has no name."""
    return f"{titles[relation]} ({relation})" if titles.get(relation) else relation


def property_order(relation: str) -> tuple[int, str]:
    """Sort key: Wikidata properties by number, other names after them."""
    digits = relation.removeprefix("P")
    return (int(digits), "") if digits.isdecimal() else (1 << 62, relation)


def _short(value: object) -> Cell:
    """Shorten hashes to twelve digits, with the full one on hover; keep cells unchanged."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{32,}", value):
        return Cell(f"{value[:12]}…", sort=value, hint=value)
    return text(value)


def _flat(value: object, prefix: str) -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _flat(value[key], f"{prefix}.{key}" if prefix else str(key))
    else:
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield prefix, shown
