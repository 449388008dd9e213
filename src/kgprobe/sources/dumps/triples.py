"""Parse N-Triples (RDF 1.1 N-Triples, section 7) from blocks of lines.

A prefilter looks for bytes that every wanted line has; it may pass too many lines, but never too
few. A line that passes it is parsed by the grammar or counted as unread, so that none is lost.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from kgprobe.sources.dumps.stream import LineBlock

#: An escaped character; surrogates and code points beyond the last one are excluded.
_UCHAR = (
    rb"\\u(?![Dd][89A-Fa-f])[0-9A-Fa-f]{4}|"
    rb"\\U(?!0000[Dd][89A-Fa-f])00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4}"
)
_IRI = rb'<((?:[^\x00-\x20<>"{}|^`\\]|' + _UCHAR + rb")*+)>"
_NODE = rb"(_:[\w\x80-\xff:](?:[\w\x80-\xff:.-]*[\w\x80-\xff:-])?+)"
_TEXT = rb'"((?:[^"\\\r\n]|\\[tbnrf"\'\\]|' + _UCHAR + rb')*+)"'
_TYPE = rb"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*+)|[ \t]*\^\^[ \t]*" + _IRI + rb")?"
_TRIPLE = re.compile(
    rb"[ \t]*(?:%s|%s)[ \t]*%s[ \t]*(?:%s|%s|%s%s)[ \t]*\.[ \t\r]*(?:#.*)?"
    % (_IRI, _NODE, _IRI, _IRI, _NODE, _TEXT, _TYPE)
)
#: An escape inside an IRI, which may hide any character that a prefilter looks for.
_ESCAPED = rb'\\[uU][0-9A-Fa-f]{4}[^"<>\s]*+>'


class Triple(NamedTuple):
    """One unescaped triple: the object is an IRI, a blank node or the text of a literal.

    `node` says whether the object is a blank node; a blank subject is `_:name`.
    """

    subject: str
    predicate: str
    iri: str | None
    node: bool
    text: str | None
    language: str
    line: bytes


class TripleTables(dict[str, list[tuple[Any, ...]]]):
    """Rows of a block by table, under `schemas`; `unread` are the lines that passed a prefilter but
    could not be read: line number, first bytes."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self.schemas = {**schemas, "unread": {"line": pl.Int64, "first": pl.String}}
        super().__init__((name, []) for name in self.schemas)

    def note_unread(self, block: LineBlock, start: int, end: int, text: str = "") -> None:
        """Record the number and beginning of an unread line, or of `text`, a part of it."""
        number = block.before + block.data.count(b"\n", 0, start) + 1
        line = block.data[start : min(end, start + 200)].decode(errors="replace")
        self["unread"].append((number, text[:200] or line))

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return each table with sorted, distinct rows, so that output bytes are deterministic."""
        frames = {n: pl.DataFrame(r, self.schemas[n], orient="row") for n, r in self.items()}
        return {name: frame.unique().sort(frame.columns) for name, frame in frames.items()}


def prefilter(needles: Iterable[bytes]) -> re.Pattern[bytes]:
    """Combine regular expressions into one pattern, which also matches escaped IRIs."""
    return re.compile(b"|".join((*needles, _ESCAPED)))


def triples(block: LineBlock, wanted: re.Pattern[bytes], tables: TripleTables) -> Iterator[Triple]:
    """Yield the triples of the lines that match `wanted`; unreadable lines go to `tables`."""
    data, place = block.data, 0
    while hit := wanted.search(data, place):
        start = data.rfind(b"\n", 0, hit.start()) + 1
        place = data.index(b"\n", hit.end()) + 1
        read = _TRIPLE.fullmatch(data, start, place - 1)
        if read is not None:
            yield _triple(read)
            continue
        # a carriage return alone also ends a line
        for line in data[start : place - 1].split(b"\r"):
            if read := _TRIPLE.fullmatch(line):
                yield _triple(read)
            elif line.strip() and not line.lstrip().startswith(b"#"):
                tables.note_unread(block, start, place - 1)


def _triple(read: re.Match[bytes]) -> Triple:
    subject, node, predicate, iri, blank, literal, language, _ = read.groups()
    return Triple(
        unescaped(node if subject is None else subject),
        unescaped(predicate),
        None if iri is None else unescaped(iri),
        blank is not None,
        None if literal is None else unescaped(literal),
        "" if language is None else language.decode().lower(),
        read[0],
    )


_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf"\'\\]))')
_PLAIN = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def unescaped(data: bytes) -> str:
    """Return the unescaped text of a term; bytes that are not UTF-8 become U+FFFD."""
    plain = data.decode(errors="replace")
    if "\\" not in plain:
        return plain
    return _ESCAPE.sub(
        lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _PLAIN.get(m[3], m[3]), plain
    )
