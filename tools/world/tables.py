"""Reading the typed tables of the embedded world: cells with their place, and problems with theirs.

A table is UTF-8 text with tabs, one header line, `#` comment lines and blank lines anywhere. In a
cell `; ` separates values, and `\\n`, `\\t`, `\\;` and `\\\\` stand for what cannot be typed.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SEPARATOR = re.compile(r"(?<!\\)((?:\\\\)*);\s*")
_MEANING = {"n": "\n", "t": "\t", ";": ";", "\\": "\\"}
#: Suggestions cost time; beyond this many problems they are left out.
_SUGGESTED = 200


@dataclass(frozen=True)
class Problem:
    """One error in a table: where, what is there, and what was expected."""

    file: str
    line: int
    column: str
    value: str
    right: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line else self.file
        column = f", column '{self.column}'" if self.column else ""
        return f"{where}{column}: {self.value!r}: {self.right}"


class WorldError(ValueError):
    """The tables of the graph cannot be read; `problems` holds every one of them."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        shown = "\n".join(f"  {p}" for p in problems[:30])
        more = f"\n  and {len(problems) - 30} more" if len(problems) > 30 else ""
        super().__init__(f"{len(problems)} problems in the embedded world:\n{shown}{more}")


@dataclass(frozen=True)
class Row:
    """One line of a table, as typed."""

    file: str
    line: int
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """Return the cell as one value, escapes resolved; empty if nothing is typed."""
        return unescape(self.cells.get(column, ""))

    def values(self, column: str) -> list[str]:
        """Return the cell's values in typed order, escapes resolved."""
        return split(self.cells.get(column, ""))


@dataclass
class Report:
    """Collects problems, so that one run shows them all."""

    problems: list[Problem] = field(default_factory=list)

    def add(self, row: Row, column: str, value: str, right: str) -> None:
        """Record a problem in a cell."""
        self.problems.append(Problem(row.file, row.line, column, value, right))

    def unknown(self, row: Row, column: str, value: str, known: Iterable[str], what: str) -> None:
        """Record an unknown name, with the nearest known ones."""
        near: list[str] = []
        if len(self.problems) < _SUGGESTED:
            near = difflib.get_close_matches(value, list(known), n=3, cutoff=0.75)
        hint = f"; near: {', '.join(repr(n) for n in near)}" if near else ""
        self.add(row, column, value, f"not {what}{hint}")

    def finish(self) -> None:
        """Raise WorldError if there is any problem."""
        if self.problems:
            raise WorldError(self.problems)


def unescape(text: str) -> str:
    """Resolve `\n`, `\t`, `\\;` and `\\`; a backslash before anything else stays."""
    return _ESCAPE.sub(lambda m: _MEANING.get(m[1], m[0]), text.strip())


def split(cell: str) -> list[str]:
    """Return the values of a cell: separated by `;`, stripped of spaces, escapes resolved."""
    parts: list[str] = []
    start = 0
    for match in _SEPARATOR.finditer(cell):
        parts.append(cell[start : match.end(1)])
        start = match.end()
    parts.append(cell[start:])
    return [unescape(p) for p in parts if p.strip()]


def read_table(path: Path, columns: Iterable[str] | None, report: Report) -> Iterator[Row]:
    """The rows of a table; header columns must be among `columns` unless that is None.

    What cannot be read (bytes that are not UTF-8, carriage returns, surplus cells, a repeated or
    unknown header) goes to `report` with its line.
    """
    lines = _lines(path, report)
    if lines is None:
        return
    header: list[str] | None = None
    for number, line in lines:
        if header is None:
            header = [h.strip() for h in line.split("\t")]
            _check_header(path, number, header, columns, report)
            continue
        cells = line.split("\t")
        cells += [""] * (len(header) - len(cells))  # editors strip tabs at the end of a line
        row = Row(path.name, number, dict(zip(header, cells, strict=False)))
        surplus = [c for c in cells[len(header) :] if c.strip()]
        if surplus:
            right = f"the header has {len(header)} columns, this line {len(cells)}"
            report.add(row, "", surplus[0], right)
        yield row
    if header is None:
        report.problems.append(Problem(path.name, 0, "", "", "no header line in this file"))


def _lines(path: Path, report: Report) -> list[tuple[int, str]] | None:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        bad = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        report.problems.append(Problem(path.name, line, "", bad, "the file must be UTF-8"))
        return None
    if "\r" in text:
        line = text.count("\n", 0, text.index("\r")) + 1
        report.problems.append(Problem(path.name, line, "", "\r", "lines end in a line feed alone"))
        text = text.replace("\r", "")
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), start=1)
    return [(n, line) for n, line in lines if line.strip() and not line.startswith("#")]


def _check_header(
    path: Path, line: int, header: list[str], columns: Iterable[str] | None, report: Report
) -> None:
    row = Row(path.name, line, {})
    for position, name in enumerate(header):
        if name in header[:position]:
            report.add(row, name, name, "this header appears twice in the table")
    if columns is not None:
        known = list(columns)
        for name in header:
            if name not in known:
                report.add(row, name, name, f"unknown header; the columns are {', '.join(known)}")
        for name in known[:2]:
            if name not in header:
                report.add(row, name, "", f"the column '{name}' is missing")
