"""Tables of triples and tables of labels: .csv, .tsv and .txt (tabs), .parquet, .jsonl."""

import csv
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.experiments import json_lines, read_text
from kgprobe.settings.sources import Columns, OwnGraph
from kgprobe.sources.graphs.raw import (
    GraphFileError,
    RawGraph,
    check_text,
    composed,
    json_object,
    short,
)
from kgprobe.sources.labels import one_line

#: suffix -> cell separator; cells of .csv may be quoted
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
ENDINGS = (*SEPARATORS, ".parquet", ".jsonl")
Row = tuple[int, list[str]]


def read(section: OwnGraph, graph: RawGraph) -> None:
    """Read statements and labels from the files of a section.

    Files of other formats, missing columns, rows of a different width and empty id cells are
    recorded in `graph` as unread.
    """
    has_labels, columns, label_roles = False, section.columns, section.roles.label
    of_labels = [columns.id, columns.label]
    of_facts = [name for key, name in asdict(columns).items() if key not in ("id", "label")]
    for path in section.files:
        with graph.going_on():
            header = section.header or Path(path).suffix.lower() == ".jsonl"  # keys are names
            head, rows = _open_table(path, header, of_facts, graph)
            ids, texts = _columns(path, head, columns, header)
            has_labels |= any(of != ids[1] for of, _ in texts)
            for line, cells in rows:
                subject, relation, end = (composed(cells[at]) for at in ids)
                ends, wrong = {"subject": subject, "relation": relation, "object": end}, ""
                if lacking := [name for name, one in ends.items() if not one]:
                    wrong = f"no {' and no '.join(lacking)}; every row has all three ids"
                elif "\0" in subject + relation + end:
                    wrong = "an id with a NUL character; is the file UTF-8?"
                elif relation.startswith("#"):
                    wrong = (
                        f"the relation {short(relation)} begins with #, as comments do in the "
                        "tables that are made of it; rename it"
                    )
                if wrong:
                    graph.unread.append(f"{path}, line {line}: {wrong}")
                elif relation in label_roles:
                    order = label_roles.index(relation)
                    graph.labels.append((subject, one_line(cells[ids[2]]), order, path, line))
                    has_labels = True
                else:
                    graph.statements.append((subject, relation, end, path, line))
                    named = ((composed(cells[of]), one_line(cells[at])) for of, at in texts)
                    graph.labels += [(name, label, 0, path, line) for name, label in named if label]
    for path in section.labels:
        with graph.going_on():
            head, rows = _open_table(path, True, of_labels, graph)
            id_at, text = _find_columns(path, head, columns.id, columns.label)
            last = len(label_roles) + 1
            for line, row in rows:
                name, label = composed(row[id_at]), one_line(row[text])
                if label and not name:
                    what = f"the label {short(label)!r} has no id"
                    graph.unread.append(f"{path}, line {line}: {what}")
                elif label:
                    graph.labels.append((name, label, last, path, line))
    graph.named = not (has_labels or section.labels) and section.ids == "own"


def _columns(
    path: str, head: list[str], columns: Columns, header: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return column indices: of subject, relation, object; and (index of id, index of label)."""
    if not header:
        if len(head) < 3:
            raise GraphFileError(f"{path}: {len(head)} columns; expected subject, relation, object")
        return [0, 1, 2], []
    ids = _find_columns(path, head, columns.subject, columns.relation, columns.object)
    labels = (columns.subject_label, columns.relation_label, columns.object_label)
    pairs = [(at, name) for at, name in zip(ids, labels, strict=True) if name in head]
    return ids, [(at, _find_columns(path, head, name)[0]) for at, name in pairs]


def _find_columns(path: str, head: list[str], *names: str) -> list[int]:
    ending, wanted = Path(path).suffix.lower(), ", ".join(names)
    own = "own names in sources.graphs.NAME.columns"
    if missing := ", ".join(repr(name) for name in names if name not in head):
        wrong = (
            f"no column {missing} in its first line, which has {short(', '.join(head))}; expected "
            f"a first line with {wanted}, its {own}, or header: false where it has none; commas "
            "separate the cells of a .csv, tabs those of a .tsv or .txt"
        )
        if ending == ".jsonl":
            wrong = f"no line has {missing}; expected objects with {wanted}, or their {own}"
        elif ending == ".parquet":
            there = short(", ".join(_parquet_columns(path)))
            wrong = f"no column {missing}; it has {there}; expected {wanted}, its {own}, or "
            wrong += "header: false for its first three"
        raise GraphFileError(f"{path}: {wrong}")
    if twice := [name for name in names if head.count(name) > 1]:
        raise GraphFileError(f"{path}: two columns {twice[0]!r} in its first line; rename one")
    return [head.index(name) for name in names]


def _open_table(
    path: str, header: bool, names: Sequence[str], graph: RawGraph
) -> tuple[list[str], Iterator[Row]]:
    """Return the column names, and (line, cells) of every row; columns that are not among `names`
    are not checked."""
    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        return _parquet(path, names if header else None)
    if ending == ".jsonl":
        return _json_lines(path, names, graph)
    if ending not in SEPARATORS:
        legal = ", ".join(ENDINGS)
        raise GraphFileError(f"{path}: not a known type of table; valid endings: {legal}")
    rows = _text(path, SEPARATORS[ending])
    first = next(rows, None)
    if first is None:
        raise GraphFileError(f"{path}: empty; expected rows of {', '.join(names[:3])}")
    below = rows if header else itertools.chain([first], rows)
    return [cell.strip() for cell in first[1]], _even(path, first[1], header, below, graph)


def _even(
    path: str, head: list[str], header: bool, rows: Iterator[Row], graph: RawGraph
) -> Iterator[Row]:
    """Yield the rows with as many cells as the first, without repetitions of a header, as in
    concatenated files; one with its names in another order is unread, because the rows below it
    have that order."""
    names, ordered = set(head) if header else (), sorted(head)
    advice = "no cell of a table with tabs holds a tab or a line end"
    if path.lower().endswith(".csv"):
        advice = 'a cell with a comma must be quoted ("...")'
    for line, cells in rows:
        wrong = ""
        if len(cells) != len(head):
            wrong = f"{len(cells)} cells, expected {len(head)}; {advice}"
        elif cells[0] not in names or sorted(cells) != ordered:
            yield line, cells
        elif cells != head:
            order = "in another order; list each file on its own in `files`"
            wrong = f"the names of the columns again, {order}"
        if wrong:
            graph.unread.append(f"{path}, line {line}: {wrong}")


def _text(path: str, separator: str) -> Iterator[Row]:
    """Yield (line number, cells) of the rows of a text file that are not blank."""
    begun = 1
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(
                # concatenated files have more byte order marks
                (line.removeprefix("\ufeff") for line in file),
                delimiter=separator,
                quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE,
                skipinitialspace=True,  # else the quotes of `a, "b"` belong to the cell
                strict=True,
            )
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield reader.line_num, cells
                begun = reader.line_num + 1
    except (OSError, UnicodeDecodeError):
        read_text(path)  # raises an error that names the line and byte, or the missing file
        raise
    except csv.Error as error:
        problem, advice = str(error), "shorten it, or take the row out"
        if problem.startswith("field larger"):
            problem = f"a cell of more than {csv.field_size_limit():,} characters"
        if separator == ",":  # quotes mean nothing in a table with tabs
            advice = (
                "a cell with quotes stands in quotes, and its own are doubled; one that is never "
                "closed takes in the lines that follow"
            )
        raise GraphFileError(f"{path}, line {begun}: {problem}; {advice}") from error


def _json_lines(
    path: str, names: Sequence[str], graph: RawGraph
) -> tuple[list[str], Iterator[Row]]:
    """Return the keys that are columns, and their values; lines with other types are unread."""
    rows = list[tuple[int, dict[str, Any]]]()
    before = len(graph.unread)
    for line, text in json_lines(path):
        with graph.going_on(whole=False):
            row = json_object(path, text, line)
            for name in names:
                check_text(path, line, name, row.get(name))
            rows.append((line, {name: row[name] for name in names if row.get(name) is not None}))
    if not rows and len(graph.unread) > before:
        return [*names], iter(())  # its keys are unknown, and its errors are recorded
    head = [name for name in names if any(name in row for _, row in rows)]
    return head, ((line, [str(row.get(name, "")) for name in head]) for line, row in rows)


def _parquet(path: str, names: Sequence[str] | None) -> tuple[list[str], Iterator[Row]]:
    """Return the columns with `names`, or the first three; the others are not read."""
    try:
        head = _parquet_columns(path)
        used = head[:3] if names is None else [name for name in head if name in names]
        frame = pl.read_parquet(path, columns=used, glob=False)
    # polars panics on some damaged files
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as problem:
        raise GraphFileError(f"{path}: not a readable parquet file: {problem}") from problem
    for name, kind in frame.schema.items():
        first = frame[name].drop_nulls().head(1)  # a column without values may have any type
        if len(first) and not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum)):
            raise GraphFileError(
                f"{path}: column {name!r} is {kind}, the first value is {short(str(first[0]))}; "
                "ids and labels are texts or whole numbers: convert the column"
            )
    texts = frame.select(pl.all().cast(pl.String).fill_null(""))
    return used, ((n, list(cells)) for n, cells in enumerate(texts.iter_rows(), 1))


def _parquet_columns(path: str) -> list[str]:
    """Return the columns of one file, whose name may hold brackets, which are no pattern here."""
    return pl.scan_parquet(path, glob=False).collect_schema().names()
