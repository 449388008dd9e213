"""Wikidata and DBpedia dumps as streams of statements (sources.md, section 9).

A dump is read once, front to back, in constant memory. A byte prefilter throws away lines that
cannot matter before anything is parsed; it may pass too much, never too little; the parser decides.
"""

import bz2
import gzip
import io
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

import orjson
import zstandard

from kgprobe.sources.dumps.archives import RATIO

ENTITY = b"<http://www.wikidata.org/entity/"
DIRECT = b"<http://www.wikidata.org/prop/direct/"
#: Decompressors that run beside us, by suffix; Python's own module where the tool is missing.
TOOLS = {".gz": ("pigz", "gzip"), ".bz2": ("lbzip2", "bzip2"), ".zst": ("zstd",)}

#: Bytes of a line; the longest of Wikidata's JSON dump, one entity each, have several 10^6.
LONGEST = 1 << 28
#: Unpacked bytes below which a ratio says nothing.
SMALL = 1 << 26


class DumpError(ValueError):
    """A dump is cut or is not what its name says; the message names file and byte offset."""


@dataclass(frozen=True)
class Statement:
    """One statement of a dump; ids as in the dump, ranks as in Wikidata."""

    subject: str
    relation: str
    object: str
    kind: Literal["item", "literal", "special"]
    rank: str = "normal"


@dataclass
class Position:
    """How far a stream has been read, in compressed bytes and in lines."""

    compressed: int = 0
    lines: int = 0


@contextmanager
def lines(path: Path, position: Position | None = None) -> Iterator[Iterator[bytes]]:
    """The decompressed lines of a .gz, .bz2, .zst or plain file, without line ends.

    A cut archive raises DumpError with its byte offset, after the lines before the cut were given.
    """
    if not path.is_file():
        raise DumpError(f"{path}: no such file")
    place = position or Position()
    with open(path, "rb") as raw:
        yield _lines(path, raw, place)


def _lines(path: Path, raw: BinaryIO, place: Position) -> Iterator[bytes]:
    try:
        with _opened(path, raw) as stream:
            yield from _counted(path, stream, place, raw.tell)
    except (EOFError, OSError, zstandard.ZstdError) as error:
        place.compressed = raw.tell()
        size = path.stat().st_size
        raise DumpError(
            f"{path}: cut or damaged near byte {raw.tell():,} of {size:,}, after line "
            f"{place.lines:,} ({error}); download it again, finished shards stay"
        ) from error
    place.compressed = raw.tell()


def _counted(
    path: Path, stream: IO[bytes] | io.BufferedIOBase, place: Position, at: Callable[[], int]
) -> Iterator[bytes]:
    """Lines without their ends, counted; `at` is the place in the compressed file.

    Memory stays that of one line: DumpError for a longer one than a dump has, and where the file
    unpacks to more than a dump does.
    """
    unpacked = 0
    while line := stream.readline(LONGEST):
        place.lines += 1
        unpacked += len(line)
        if len(line) == LONGEST:
            raise DumpError(f"{path}: line {place.lines:,} has {LONGEST:,} bytes or more")
        if place.lines % 4096 == 0:
            place.compressed = at()
            if unpacked > SMALL and unpacked > RATIO * place.compressed:
                raise DumpError(
                    f"{path}: {place.compressed:,} bytes unpack to {unpacked:,} and more, over "
                    f"{RATIO} fold; no dump does"
                )
        yield line.rstrip(b"\r\n")


@contextmanager
def _opened(path: Path, raw: BinaryIO) -> Iterator[IO[bytes] | io.BufferedIOBase]:
    if path.suffix == ".gz":
        yield gzip.GzipFile(fileobj=raw)
    elif path.suffix == ".bz2":
        yield bz2.BZ2File(raw)
    elif path.suffix == ".zst":
        yield io.BufferedReader(_Zstd(raw))
    else:
        yield raw


class _Zstd(io.RawIOBase):
    """The content of one or more zstd frames; EOFError when the last frame does not end.

    Packed bytes are taken in small steps: each may unpack to 32,000 times as many.
    """

    STEP = 1 << 13

    def __init__(self, raw: BinaryIO) -> None:
        self.raw, self.packed, self.ready = raw, b"", memoryview(b"")
        self.frame: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ready:
            packed = self.packed or self.raw.read(self.STEP)
            if not packed:
                if self.frame is not None:
                    raise EOFError("the last zstd frame does not end")
                return 0
            self.frame = self.frame or zstandard.ZstdDecompressor().decompressobj()
            self.ready, self.packed = memoryview(self.frame.decompress(packed)), b""
            if self.frame.eof:
                self.packed, self.frame = self.frame.unused_data, None
        size = min(len(buffer), len(self.ready))
        buffer[:size], self.ready = self.ready[:size], self.ready[size:]
        return size


def tool(path: Path) -> list[str] | None:
    """The command that decompresses such a file from its standard input, if one is installed."""
    for name in TOOLS.get(path.suffix, ()):
        if shutil.which(name):
            return [name, "-dc"]
    return None


@contextmanager
def piped_lines(path: Path, position: Position | None = None) -> Iterator[Iterator[bytes]]:
    """Like `lines`, but decompressed by a tool in a process of its own; DumpError when it fails."""
    command = tool(path)
    if command is None or not path.is_file():
        with lines(path, position) as found:
            yield found
        return
    place = position or Position()
    with open(path, "rb") as raw:
        process = subprocess.Popen(
            command, stdin=raw, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            yield _piped(path, raw, process, place)
        finally:
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            if process.poll() is None:
                process.kill()
            process.wait()


def _piped(
    path: Path, raw: BinaryIO, process: subprocess.Popen[bytes], place: Position
) -> Iterator[bytes]:
    assert process.stdout is not None
    assert process.stderr is not None

    def at() -> int:
        # both processes share the offset of the open file
        return os.lseek(raw.fileno(), 0, os.SEEK_CUR)

    yield from _counted(path, process.stdout, place, at)
    place.compressed = at()
    if process.wait():
        said = process.stderr.read().decode(errors="replace").strip()[-300:]
        raise DumpError(
            f"{path}: cut or damaged near byte {place.compressed:,} of {path.stat().st_size:,}, "
            f"after line {place.lines:,} ({said}); download it again, finished shards stay"
        )


def wikidata_json(
    source: Iterable[bytes], relations: Iterable[str], subjects: Iterable[str] | None = None
) -> Iterator[Statement]:
    """Statements of the wanted relations from the lines of a Wikidata JSON dump.

    Deprecated statements are left out; unknown and no value are `special`. With `subjects`, only
    those entities are read. Raises DumpError for a line that is no JSON object.
    """
    wanted = set(relations)
    prefilter = _any_of(f'"{relation}":['.encode() for relation in sorted(wanted))
    entities = None if subjects is None else set(subjects)
    for number, line in enumerate(source, 1):
        if len(line) < 3 or not prefilter.search(line):
            continue
        try:
            entity = orjson.loads(line.rstrip(b","))
        except orjson.JSONDecodeError as error:
            raise DumpError(f"line {number}: not a JSON object ({error})") from error
        if entities is not None and entity.get("id") not in entities:
            continue
        claims = entity.get("claims") or {}
        # an entity without claims is written as an empty list
        for relation in sorted(wanted & set(claims)):
            for claim in claims[relation]:
                if claim["rank"] != "deprecated":
                    yield _claim(entity["id"], relation, claim)


def _claim(subject: str, relation: str, claim: dict[str, Any]) -> Statement:
    snak, rank = claim["mainsnak"], claim["rank"]
    if snak["snaktype"] != "value":
        return Statement(subject, relation, snak["snaktype"], "special", rank)
    value = snak["datavalue"]["value"]
    if snak["datavalue"]["type"] == "wikibase-entityid":
        return Statement(subject, relation, value["id"], "item", rank)
    if snak["datavalue"]["type"] == "time":
        return Statement(subject, relation, value["time"].lstrip("+"), "literal", rank)
    if isinstance(value, dict):
        plain = value.get("text") or value.get("amount", "").lstrip("+")
        return Statement(subject, relation, plain or orjson.dumps(value).decode(), "literal", rank)
    return Statement(subject, relation, str(value), "literal", rank)


_TRUTHY = re.compile(
    rb"^<http://www\.wikidata\.org/entity/(Q\d+)> <http://www\.wikidata\.org/prop/direct/(P\d+)> "
    rb"(?:<http://www\.wikidata\.org/entity/([QPL]\d+)>|(.+)) \.$"
)


def wikidata_truthy(source: Iterable[bytes], relations: Iterable[str]) -> Iterator[Statement]:
    """Statements of the wanted relations from the lines of a truthy N-Triples dump.

    The dump holds best-rank statements only. Blank and skolem nodes are unknown values (`special`).
    """
    prefilter = _any_of(f"/prop/direct/{relation}> ".encode() for relation in sorted(relations))
    for line in source:
        if not prefilter.search(line):
            continue
        match = _TRUTHY.match(line)
        if match is None:
            continue
        subject, relation, item, other = match.groups()
        if item is not None:
            yield Statement(subject.decode(), relation.decode(), item.decode(), "item")
        elif other.startswith((b"_:", b"<http://www.wikidata.org/.well-known/genid/")):
            yield Statement(subject.decode(), relation.decode(), "somevalue", "special")
        else:
            yield Statement(subject.decode(), relation.decode(), text(other), "literal")


_TRIPLE = re.compile(rb"^<([^>]+)> <([^>]+)> (?:<([^>]+)>|(\".*)) \.$")


def ntriples(source: Iterable[bytes], predicates: Iterable[str]) -> Iterator[Statement]:
    """Statements of the wanted predicate IRIs from N-Triples lines (DBpedia's dumps); full IRIs."""
    prefilter = _any_of(f"> <{predicate}> ".encode() for predicate in sorted(predicates))
    for line in source:
        if prefilter.search(line) and (match := _TRIPLE.match(line)):
            subject, predicate, iri, literal = match.groups()
            kind: Literal["item", "literal"] = "item" if iri is not None else "literal"
            value = unescaped(iri) if iri is not None else text(literal)
            yield Statement(unescaped(subject), predicate.decode(), value, kind)


def _any_of(needles: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(needle) for needle in needles))


_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf"\'\\]))')
_PLAIN = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def unescaped(data: bytes) -> str:
    """The text of an N-Triples term with its escapes undone."""
    plain = data.decode()
    if "\\" not in plain:
        return plain
    return _ESCAPE.sub(
        lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _PLAIN.get(m[3], m[3]), plain
    )


def text(literal: bytes) -> str:
    """The lexical form of an N-Triples literal, without language and datatype."""
    return unescaped(literal[1 : literal.rindex(b'"')]) if b'"' in literal else literal.decode()
