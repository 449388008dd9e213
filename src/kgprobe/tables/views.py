"""Views: a printed table is a selection of RESULTS, the dimensions in rows and columns, a format.

    view = View("models", "Accuracy by model", where={"paper": ["bear"], "metric": ["accuracy"]},
                rows=["model", "method"], columns=["metric"])
    printed = view.of(results)

A dimension is a column of RESULTS. If it is in neither rows nor columns, it must be the same for
all numbers of a cell: two numbers in one cell are an error that names the dimensions in which they
differ; no choice is made between them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.contracts import SETTING
from kgprobe.schema import atomic
from kgprobe.tables.results import DIMENSIONS

#: in `where` of a view: no further setting
PLAIN = {name: [""] for name in SETTING}

Row = Mapping[str, Any]
Key = tuple[str, ...]


class ViewError(ValueError):
    """A view asks for dimensions that RESULTS do not have, or two numbers belong to one cell."""


@dataclass(frozen=True)
class View:
    """A table to be printed.

    `where`: dimension -> the values shown, in printing order; a dimension of rows or columns that
    is not included shows all of its values, in order of appearance. `words`: the printed form of a
    value, by (dimension, value) or by value. `digits`: decimals by metric, `usual` for others.
    `only`: a filter of RESULTS that `where` cannot express.
    """

    name: str
    title: str
    where: Mapping[str, Sequence[str]]
    rows: Sequence[str]
    columns: Sequence[str] = ("metric",)
    heads: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[Any, str] = field(default_factory=dict)
    digits: Mapping[str, int] = field(default_factory=dict)
    usual: int = 1
    caption: str = ""
    only: Callable[[pl.DataFrame], pl.DataFrame] = lambda results: results

    def __post_init__(self) -> None:
        for name in [*self.where, *self.rows, *self.columns]:
            legal = [*DIMENSIONS, *SETTING]
            if name not in legal:
                near = get_close_matches(name, legal, 1)
                hint = f" (did you mean {near[0]}?)" if near else f"; valid: {', '.join(legal)}"
                raise ViewError(f"view {self.name}: unknown dimension {name!r}{hint}")

    def where_also(self, **values: Sequence[str]) -> "View":
        """Restrict the view to fewer numbers."""
        return replace(self, where={**self.where, **values})

    def of(self, results: pl.DataFrame) -> "Printed":
        """Apply the view to RESULTS. Raises ViewError if two numbers belong to one cell."""
        numbers = self.select(results)
        rows, columns = self._keys(numbers, self.rows), self._keys(numbers, self.columns)
        cells: dict[tuple[Key, Key], Row] = {}
        for row in numbers.iter_rows(named=True):
            place = tuple(row[n] for n in self.rows), tuple(row[n] for n in self.columns)
            if place in cells:
                raise ViewError(f"view {self.name}: {_clash(cells[place], row, place)}")
            cells[place] = row
        return Printed(self, rows, columns, cells)

    def select(self, results: pl.DataFrame) -> pl.DataFrame:
        """Select the numbers that the view shows."""
        wanted = {name: [str(value) for value in values] for name, values in self.where.items()}
        return self.only(results).filter(*(pl.col(n).is_in(v) for n, v in wanted.items()))

    def _keys(self, numbers: pl.DataFrame, names: Sequence[str]) -> list[Key]:
        """Return the keys that occur, ordered dimension by dimension."""
        keys, orders = dict.fromkeys(numbers.select(names).rows()), []
        for name in names:
            values = dict.fromkeys([*map(str, self.where.get(name, [])), *numbers[name]])
            orders.append({value: i for i, value in enumerate(values)})
        return sorted(keys, key=lambda key: [o[v] for o, v in zip(orders, key, strict=True)])

    def word(self, name: str, value: str) -> str:
        """Return the printed form of a value of a dimension."""
        return self.words.get((name, value), self.words.get(value, value))


@dataclass(frozen=True)
class Printed:
    """The numbers of a view arranged in cells: (row key, column key) -> row of RESULTS."""

    view: View
    rows: Sequence[Key]
    columns: Sequence[Key]
    cells: Mapping[tuple[Key, Key], Row]

    @property
    def heads(self) -> list[str]:
        """Headers of all columns: the dimensions in rows, then the keys of the columns."""
        view = self.view
        first = [view.heads.get(name, name) for name in view.rows]
        return first + [self.words(view.columns, key) for key in self.columns]

    def words(self, names: Sequence[str], key: Key) -> str:
        """Format a key for display."""
        parts = [self.view.word(n, v) for n, v in zip(names, key, strict=True)]
        return ", ".join(word for word in parts if word)

    def lines(self, shown: Callable[[Row | None, int], Any]) -> list[list[Any]]:
        """Return a list per row: its words, then `shown` applied to every cell and its decimals."""
        view = self.view
        table = []
        for row in self.rows:
            line: list[Any] = [view.word(n, v) for n, v in zip(view.rows, row, strict=True)]
            for column in self.columns:
                cell = self.cells.get((row, column))
                digits = view.digits.get(cell["metric"], view.usual) if cell else view.usual
                line.append(shown(cell, digits))
            table.append(line)
        return table


def write(view: View, results: pl.DataFrame, path: str | Path) -> None:
    """Write the view as tab-separated text: its words, then numbers with intervals and figures."""
    printed = view.of(results)
    lines = [printed.heads, *printed.lines(text)]
    content = "\n".join("\t".join(" ".join(str(c).split()) for c in line) for line in lines)
    with atomic(path) as temporary:
        temporary.write_text(content + "\n", encoding="utf-8")


def write_all(views: Iterable[View], results: pl.DataFrame, folder: str | Path) -> None:
    """Write every view into a folder, which is created even if there are none."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for view in views:
        write(view, results, Path(folder) / f"{view.name}.tsv")


def text(cell: Row | None, digits: int) -> str:
    """Format a cell as plain text: value, fraction, interval, published figure; "-" if empty."""
    if cell is None:
        return "-"
    shown = "undef" if cell["value"] is None else f"{cell['value']:z.{digits}f}"
    # a value that is not a fraction may still have a denominator
    if None not in (cell["numerator"], cell["denominator"]):
        shown += f" ({fraction(cell)})"
    if cell["low"] is not None:
        shown += f" [{cell['low']:z.{digits}f}, {cell['high']:z.{digits}f}]"
    return shown if cell["published"] is None else f"{shown}, published {cell['published']:g}"


def fraction(cell: Row) -> str:
    """Format a number's numerator and denominator, counts or sums of hits: with four digits, or
    without decimals."""
    parts = cell["numerator"], cell["denominator"]
    return "/".join(f"{x:.4g}" if x < 9999.5 else f"{x:,.0f}" for x in parts)


def _clash(one: Row, other: Row, place: tuple[Key, Key]) -> str:
    differ = [n for n in one if n in (*DIMENSIONS, *SETTING) and one[n] != other[n]]
    pairs = ", ".join(f"{n} {one[n]!r} and {other[n]!r}" for n in differ)
    return f"two numbers in cell {place}: they differ in {pairs}; name it in rows, columns or where"
