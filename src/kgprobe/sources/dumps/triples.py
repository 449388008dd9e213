"""Read N-Triples from blocks of lines.

A prefilter looks for bytes that every wanted line has; it may pass too many lines, but never too
few. A line that passes it is parsed by Oxigraph or counted as unread, so that none is lost.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse
from pyoxigraph import Triple as Quoted

from kgprobe.sources.dumps.stream import LineBlock

#: Characters that no IRI holds; Oxigraph checks them only together with rules that dumps break.
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
#: An escape inside an IRI, which may hide any character that a prefilter looks for.
_ESCAPED = rb'\\[uU][0-9A-Fa-f]{4}[^"<>\s]*+>'


class DumpTriple(NamedTuple):
    """One unescaped triple: the object is an IRI, a blank node or the text of a literal.

    `node` says whether the object is a blank node; a blank subject is `_:name`.
    """

    subject: str
    predicate: str
    iri: str | None
    node: bool
    text: str | None
    language: str
    line: str


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


def triples(
    block: LineBlock, wanted: re.Pattern[bytes], tables: TripleTables
) -> Iterator[DumpTriple]:
    """Yield the triples of the lines that match `wanted`; unreadable lines go to `tables`. Bytes
    that are not UTF-8 become U+FFFD."""
    data, place = block.data, 0
    while hit := wanted.search(data, place):
        start = data.rfind(b"\n", 0, hit.start()) + 1
        place = data.index(b"\n", hit.end()) + 1
        # a carriage return alone also ends a line
        for line in data[start : place - 1].decode(errors="replace").split("\r"):
            try:
                quads = [*parse(input=line, format=RdfFormat.N_TRIPLES, lenient=True)]
                yield from [_triple(quad.triple, line) for quad in quads]
            except (SyntaxError, ValueError):
                tables.note_unread(block, start, place - 1)


def _triple(triple: Quoted, line: str) -> DumpTriple:
    subject, predicate, value = triple.subject, triple.predicate.value, triple.object
    if isinstance(value, Quoted) or isinstance(subject, Quoted):
        raise ValueError("a triple about a triple")
    name = str(subject) if isinstance(subject, BlankNode) else subject.value
    iri = value.value if isinstance(value, NamedNode) else ""
    if any(map(_NOT_IN_IRI.search, (name, predicate, iri))):
        raise ValueError("an IRI with characters that no IRI holds")
    if isinstance(value, Literal):
        return DumpTriple(name, predicate, None, False, value.value, value.language or "", line)
    is_node = isinstance(value, BlankNode)
    return DumpTriple(name, predicate, None if is_node else iri, is_node, None, "", line)
