"""Grids: TABLE frames and other records arranged for reading, as the report prints them."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from kgprobe.tables import marks
from kgprobe.tables.answers import Probe
from kgprobe.tables.draw import names
from kgprobe.tables.table import lookup


@dataclass(frozen=True)
class Cell:
    """What stands in a cell: `small` under it, `sort` for sorting (None: last), `hint` on hover."""

    text: str
    small: str = ""
    sort: float | str | None = None
    hint: str = ""
    muted: bool = False


@dataclass(frozen=True)
class Grid:
    """A table for reading. `numeric` columns are aligned right; the first column names the row."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: frozenset[int] = field(default_factory=frozenset)
    caption: str = ""


def number(value: float, digits: int = 1) -> str:
    """A number as printed: thousands separated, no negative zero."""
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def measured(
    cell: Mapping[str, Any] | None, digits: int = 1, few: bool = False, sized: bool = False
) -> Cell:
    """A TABLE number with its interval below and n on hover; a dash where there is none.

    `few`: a number of fewer rows than marks.FEWEST is marked; `sized`: n stands below, too.
    """
    if cell is None:
        return Cell("–", muted=True)
    hint = f"n = {cell['n']:,}"
    below = [hint] if sized else []
    if cell["low"] is not None:
        below.append(f"{number(cell['low'], digits)} to {number(cell['high'], digits)}")
    shown = number(cell["value"], digits) + (marks.few(cell["n"]) if few else "")
    return Cell(shown, "; ".join(below), cell["value"], hint)


def beside(cell: Mapping[str, Any] | None, digits: int = 1, few: bool = False) -> Cell:
    """A number with the printed one in brackets; `few` as in `measured`."""
    made = measured(cell, digits, few)
    if cell is None or cell["published"] is None:
        return made
    return replace(made, text=f"{made.text} [{number(float(cell['published']), digits)}]")


def text(value: object) -> Cell:
    """A cell of plain text or of a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(f"{value:,}", sort=float(value))
    shown = "" if value is None else str(value)
    return Cell(shown or "–", sort=shown.casefold(), muted=not shown)


def models(frame: pl.DataFrame, probes: Sequence[Probe]) -> Grid:
    """`bear_models` of one benchmark: a row per probe, then the baselines."""
    cells, benchmark = lookup(frame), probes[0].benchmark
    columns = [
        ("score", "accuracy, %", 1),
        ("published", "published", 2),
        ("sem", "SEM over templates", 2),
        ("template 0", "template 0", 1),
        ("template 1", "template 1", 1),
        ("template 2", "template 2", 1),
        ("macro", "mean over relations", 1),
        ("macro, relations resampled", "the same, relations resampled", 1),
        ("1:1", "1:1 relations", 1),
        ("1:N", "1:N relations", 1),
        ("first wins", "ties to the first", 1),
        ("mrr", "MRR", 3),
    ]
    labels = {p.label: named(p) for p in probes}
    for name in ("random", "majority"):
        labels[f"{name} | {benchmark}"] = Cell(name, "baseline", name)
    present = {column for row, column in cells if row in labels}
    for label in labels:
        score = cells.get((label, "score"))
        if score and score["published"] is not None:
            cells[label, "published"] = {**score, "value": score["published"], "low": None}
            present.add("published")
    columns = [c for c in columns if c[0] in present]
    rows = []
    for label, head in labels.items():
        size = cells[label, "score"]["n"]
        values = [measured(cells.get((label, c)), digits) for c, _, digits in columns]
        rows.append([head, *values, text(size)])
    heads = ["model", *(title for _, title, _ in columns), "items"]
    caption = "Interval in small print; SEM with divisor n - 1; published figures in per cent."
    return Grid("Accuracy by model", heads, rows, frozenset(range(1, len(heads))), caption)


def headline(cells: Mapping[tuple[str, str], Mapping[str, Any]], probes: Sequence[Probe]) -> Grid:
    """BEAR's part of the headline, by (row, column): a row per probe, control models last."""
    known = dict(cells)
    columns = {"accuracy": "accuracy, %", "published": "published", "chance": "chance, %"}
    columns |= {"taught": "taught facts, %", "untaught": "untaught facts, %", "AUC": "AUC"}
    for (row, column), cell in cells.items():
        if column == "accuracy" and cell["published"] is not None:
            known[row, "published"] = {**cell, "value": cell["published"], "low": None}
    present = [c for c in columns if any(column == c for _, column in known)]
    rows = []
    for probe in sorted(probes, key=lambda p: p.control):
        size = known[probe.label, "accuracy"]["n"]
        found = [(c, known.get((probe.label, c))) for c in present]
        values = [measured(cell, {"AUC": 3, "published": 2}.get(c, 1)) for c, cell in found]
        rows.append([named(probe), text(probe.benchmark), *values, text(size), text(probe.method)])
    heads = ["model", "benchmark", *(columns[c] for c in present), "items", "method"]
    caption = "Interval of 95 % in small print. Press a column's head to sort."
    return Grid("BEAR: accuracy", heads, rows, frozenset(range(2, len(heads) - 1)), caption)


def relations(frame: pl.DataFrame, probes: Sequence[Probe], titles: Mapping[str, str]) -> Grid:
    """`bear_relations` of one benchmark: a row per relation, a column per probe."""
    cells, shown, benchmark = lookup(frame), names(probes), probes[0].benchmark
    extra = [f"options | {benchmark}", f"random | {benchmark}", f"majority | {benchmark}"]
    rows = []
    for relation in sorted({r for r, c in cells if c == extra[0]}, key=property_order):
        options, random, majority = (cells[relation, c] for c in extra)
        rows.append(
            [
                titled(relation, titles),
                *(measured(cells.get((relation, p.label))) for p in probes),
                measured(random),
                measured(majority),
                text(round(options["value"])),
                text(options["n"]),
            ]
        )
    heads = ["relation", *(f"{shown[p.label]}, %" for p in probes)]
    heads += ["chance, %", "majority, %", "options", "items"]
    caption = "Mean over templates. Press a column's head to sort."
    return Grid("Accuracy by relation", heads, rows, frozenset(range(1, len(heads))), caption)


def pivot(
    frame: pl.DataFrame,
    title: str,
    first: str,
    columns: Mapping[str, str],
    rows: Mapping[str, str] | None = None,
    caption: str = "",
    shown: Callable[[Mapping[str, Any] | None], Cell] = measured,
) -> Grid:
    """Any TABLE: the named columns (key -> head) that occur, and the named rows (key -> name);
    without `rows` all of them, in order of appearance. `shown`: how a number is written."""
    cells = lookup(frame)
    present = {column for row, column in cells if rows is None or row in rows}
    chosen = {key: head for key, head in columns.items() if key in present}
    occurring = dict.fromkeys(row for row, column in cells if column in chosen)
    wanted = {row: row for row in occurring} if rows is None else rows
    body = [
        [text(name), *(shown(cells.get((row, key))) for key in chosen)]
        for row, name in wanted.items()
        if row in occurring
    ]
    heads = [first, *chosen.values()]
    return Grid(title, heads, body, frozenset(range(1, len(heads))), caption)


def funnel(frame: pl.DataFrame) -> Grid:
    """FUNNEL of one benchmark, summed over relations, one row per step."""
    steps = (
        frame.group_by("position", "step")
        .agg(pl.col("rows_in", "rows_out").sum(), pl.col("relation").n_unique())
        .sort("position", "step")
    )
    rows = [
        [
            text(row["step"].replace("_", " ")),
            text(row["relation"]),
            text(row["rows_in"]),
            text(row["rows_out"]),
            text(row["rows_in"] - row["rows_out"]),
        ]
        for row in steps.iter_rows(named=True)
    ]
    heads = ["step", "relations", "statements in", "statements out", "dropped"]
    return Grid("Steps, all relations", heads, rows, frozenset(range(1, 5)))


def funnel_by_relation(frame: pl.DataFrame, titles: Mapping[str, str]) -> Grid:
    """FUNNEL of one benchmark: what every relation started with and kept, and dropped where."""
    rows = []
    for relation in sorted(frame["relation"].unique().to_list(), key=property_order):
        own = frame.filter(pl.col("relation") == relation).sort("position")
        worst = own.sort(pl.col("rows_in") - pl.col("rows_out"), descending=True).row(0, named=True)
        lost = worst["rows_in"] - worst["rows_out"]
        rows.append(
            [
                titled(relation, titles),
                text(own["rows_in"][0]),
                text(own["rows_out"][-1]),
                text(own["subjects"][-1]),
                text(own["answers"][-1]),
                text(f"{worst['step'].replace('_', ' ')} ({lost:,})" if lost else ""),
            ]
        )
    heads = ["relation", "pulled", "kept", "subjects", "answers", "largest loss"]
    return Grid("Relation by relation", heads, rows, frozenset(range(1, 5)))


def records(title: str, rows: Iterable[Mapping[str, object]], caption: str = "") -> Grid:
    """Rows of a sheet; columns in order of first appearance."""
    rows = list(rows)
    heads = list(dict.fromkeys(key for row in rows for key in row))
    whole = {
        i for i, key in enumerate(heads) if rows and all(isinstance(r.get(key), int) for r in rows)
    }
    body = [[_short(row.get(key)) for key in heads] for row in rows]
    return Grid(title, heads, body, frozenset(whole), caption)


def settings(title: str, config: Mapping[str, Any]) -> Grid:
    """A nested mapping as rows of dotted key and value."""
    rows = [[Cell(key, sort=key), Cell(value, sort=value)] for key, value in _flat(config, "")]
    return Grid(title, ["key", "value"], rows)


def named(probe: Probe) -> Cell:
    """A model's name, with kind and BOS policy in small print."""
    policy = f", BOS {probe.bos}" if probe.kind == "causal" else ""
    exact = "" if probe.dtype == "float32" else f", {probe.dtype}, not exact"
    return Cell(probe.model, f"{kind_of(probe)}{policy}{exact}", probe.model.casefold())


def titled(relation: str, titles: Mapping[str, str]) -> Cell:
    """A relation's name with its id in small print; the id alone where it has no name."""
    name = titles.get(relation)
    return Cell(name, relation, name.casefold()) if name else text(relation)


def kind_of(probe: Probe) -> str:
    """The kind of a probe's model, control models marked."""
    return f"{probe.kind}, control" if probe.control else probe.kind


def property_order(relation: str) -> tuple[int, str]:
    """Wikidata properties by number, other names after them."""
    digits = relation.removeprefix("P")
    return (int(digits), "") if digits.isdigit() else (1 << 62, relation)


def _short(value: object) -> Cell:
    """Hashes to twelve digits, with all of them on hover."""
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
