"""Tables of triples and tables of labels: .csv, .tsv and .txt (tabs), .parquet."""

import csv
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from kgprobe.settings import Columns, OwnGraph
from kgprobe.sources.graphs import raw
from kgprobe.sources.graphs.flaws import GraphFileError
from kgprobe.sources.graphs.raw import Raw

#: ending -> what separates cells; cells of .csv may stand in quotes
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
Row = tuple[int, list[str]]


def read(section: OwnGraph) -> Raw:
    """Statements and labels of the files of a section.

    Raises GraphFileError for files of another form, columns that are missing, rows of another
    width and empty cells of ids.
    """
    told: list[tuple[str, str, str, str, int]] = []
    spoken: list[tuple[str, str, int, str, int]] = []
    worded = False
    for path in section.files:
        head, rows = _opened(path, section.header)
        ids, texts = _columns(path, head, section.columns, section.header)
        worded |= bool(texts)
        for line, cells in rows:
            subject, relation, end = (cells[at] for at in ids)
            for name, of in (("subject", subject), ("relation", relation), ("object", end)):
                if not of:
                    raise GraphFileError(
                        f"{path}, line {line}: no {name}; every row has all three ids"
                    )
            if relation in section.roles.label:
                spoken.append((subject, end, 0, path, line))
                continue
            told.append((subject, relation, end, path, line))
            spoken += [(cells[of], cells[at], 0, path, line) for of, at in texts if cells[at]]
    for path in section.labels:
        head, rows = _opened(path, True)
        columns = section.columns
        own, text = (_place(path, head, name) for name in (columns.id, columns.label))
        spoken += [(row[own], row[text], 1, path, line) for line, row in rows if row[text]]
    named = not worded and not section.labels and section.ids == "own"
    return Raw(raw.statements(told), raw.labels(spoken), named=named)


def _columns(
    path: str, head: list[str], columns: Columns, header: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Places of subject, relation, object; (place of an id, place of its label)."""
    if not header:
        if len(head) < 3:
            raise GraphFileError(f"{path}: {len(head)} columns; expected subject, relation, object")
        return [0, 1, 2], []
    names = (columns.subject, columns.relation, columns.object)
    ids = [_place(path, head, name) for name in names]
    labels = (columns.subject_label, columns.relation_label, columns.object_label)
    return ids, [
        (at, head.index(name)) for at, name in zip(ids, labels, strict=True) if name in head
    ]


def _place(path: str, head: list[str], name: str) -> int:
    if name not in head:
        raise GraphFileError(
            f"{path}: no column {name!r}; it has {', '.join(head)}. Name its own in "
            "sources.graphs.NAME.columns, or write header: false"
        )
    return head.index(name)


def _opened(path: str, header: bool) -> tuple[list[str], Iterator[Row]]:
    """The names of the columns, and (line, cells) of every row."""
    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        return _parquet(path)
    if ending not in SEPARATORS:
        legal = ", ".join((*SEPARATORS, ".parquet"))
        raise GraphFileError(f"{path}: no table that is known; legal endings: {legal}")
    rows = _text(path, SEPARATORS[ending])
    first = next(rows, None)
    if first is None:
        raise GraphFileError(f"{path}: empty; expected rows of subject, relation, object")
    if header:
        return first[1], _even(path, len(first[1]), rows)
    return first[1], _even(path, len(first[1]), _chained(first, rows))


def _chained(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _even(path: str, width: int, rows: Iterator[Row]) -> Iterator[Row]:
    for line, cells in rows:
        if len(cells) != width:
            raise GraphFileError(
                f"{path}, line {line}: {len(cells)} cells, expected {width}; a cell that holds a "
                'comma stands in quotes ("...")'
            )
        yield line, cells


def _text(path: str, separator: str) -> Iterator[Row]:
    """Rows of a text file that are not empty, with their line."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        if separator == ",":
            reader = csv.reader(file, strict=True)
        else:
            reader = csv.reader(file, delimiter=separator, quoting=csv.QUOTE_NONE)
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except (csv.Error, UnicodeDecodeError) as problem:
                after = reader.line_num + isinstance(problem, UnicodeDecodeError)
                raise GraphFileError(
                    f"{path}, line {after} or after it: {problem}; save it as UTF-8, with quotes "
                    "around cells that hold one, doubled inside"
                ) from problem
            if any(cells):
                yield reader.line_num, [cell.strip() for cell in cells]


def _parquet(path: str) -> tuple[list[str], Iterator[Row]]:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise GraphFileError(f"{path}: not a readable parquet file: {problem}") from problem
    texts = frame.select(pl.all().cast(pl.String).fill_null("").str.strip_chars())
    return frame.columns, ((n, list(cells)) for n, cells in enumerate(texts.iter_rows(), 1))
