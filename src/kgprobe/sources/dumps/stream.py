"""Read the text of a compressed file in blocks of whole lines.

    for block in blocks(path):
        block.data            # whole lines, about `size` bytes of them

gzip and bzip2 are decompressed by rapidgzip on several cores, zstd by Arrow. Memory is bounded in
bytes, however long the lines are.
"""

import gzip
import mmap
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import rapidgzip

from kgprobe.sources.dumps.archives import RATIO
from kgprobe.sources.rdf_forms import BOM

#: Bytes of text in a block.
BLOCK = 1 << 26
#: Maximum bytes of a line; the longest of Wikidata's JSON dump, one entity each, have several 10^6.
LONGEST = 1 << 28
#: Decompressed bytes below which the compression ratio is not checked.
SMALL = 1 << 26
#: Bytes per read.
STEP = 1 << 20
#: The first bytes of a gzip member.
MEMBER = b"\x1f\x8b\x08"


class DumpError(ValueError):
    """A dump is truncated or has the wrong format; the message names file and byte offset."""


@dataclass(frozen=True)
class LineBlock:
    """Whole lines of a file: the number of lines before them, their bytes, and how many bytes of
    the compressed file were read so far."""

    before: int
    data: bytes
    compressed: int = 0

    @property
    def lines(self) -> int:
        """The number of lines up to and including the block."""
        return self.before + self.data.count(b"\n")


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a .gz, .bz2, .zst or plain file, without line ends. Raises DumpError."""
    for block in blocks(path, STEP):
        yield from (line.rstrip(b"\r") for line in block.data[:-1].split(b"\n"))


def blocks(path: Path, size: int = BLOCK, threads: int = 1) -> Iterator[LineBlock]:
    """Yield blocks of whole lines, each about `size` bytes or one longer line; all end in \\n.

    A truncated file raises DumpError with its byte offset, after most of the lines before it were
    yielded: data that are decompressed together (4 MiB of gzip, a block of bzip2) stay together.
    """
    if not path.is_file():
        raise DumpError(f"{path}: no such file")
    total, pieces = path.stat().st_size, list[bytes]()
    held = unpacked = lines = 0
    with _open_packed(path, threads) as (stream, at):
        try:
            while data := stream.read(min(STEP, size)):
                unpacked += len(data)
                if unpacked == len(data):
                    data = data.removeprefix(BOM)
                if unpacked > SMALL and unpacked > RATIO * total:
                    raise DumpError(
                        f"{path}: unpacks to {unpacked:,} bytes and more, over {RATIO} fold"
                    )
                end = data.rfind(b"\n") + 1
                if end and held + len(data) >= size:
                    block = LineBlock(lines, b"".join((*pieces, data[:end])), at())
                    pieces, held, lines = [data[end:]], len(data) - end, block.lines
                    yield block
                else:
                    pieces.append(data)
                    held += len(data)
                if held >= LONGEST and len(b"".join(pieces).rpartition(b"\n")[2]) >= LONGEST:
                    raise DumpError(f"{path}: line {lines + 1:,} has {LONGEST:,} bytes or more")
            if rest := b"".join(pieces):
                block = LineBlock(lines, rest if rest.endswith(b"\n") else rest + b"\n", at())
                lines = block.lines
                yield block
            problem = _cut(path, at(), unpacked)
        except DumpError:
            raise
        # rapidgzip and Arrow raise built-in errors
        except (EOFError, OSError, RuntimeError, ValueError) as error:
            problem = str(error) or type(error).__name__
        if problem:
            raise DumpError(
                f"{path}: truncated or damaged near byte {at():,} of {total:,}, after line "
                f"{lines:,} ({problem}); download it again, finished parts are kept"
            )


def _cut(path: Path, end: int, unpacked: int) -> str:
    """Describe an error at the end of a compressed file, or return "". rapidgzip (0.16.1) accepts a
    truncated gzip file as if it were complete, and skips data after a bzip2 stream. The position
    where it stopped shows that, except if a block happens to end there; then the last member is
    checked to be complete. A file that is truncated between two members cannot be told from a
    complete one."""
    suffix, size = path.suffix.lower(), path.stat().st_size
    if suffix not in (".gz", ".bz2") or not size:
        return ""
    if end < size:
        return "no whole archive ends there"
    with open(path, "rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if suffix == ".bz2" or int.from_bytes(data[-4:], "little") == unpacked % (1 << 32):
            return ""
        start = len(data)
        while (start := data.rfind(MEMBER, 0, start)) >= 0:
            data.seek(start)
            with suppress(OSError, EOFError, zlib.error), gzip.open(data) as member:
                while member.read(STEP):
                    pass
                return ""
    return "the last member does not end"


@contextmanager
def _open_packed(path: Path, threads: int) -> Iterator[tuple[Any, Callable[[], int]]]:
    """Yield (stream of decompressed bytes, function that returns the compressed position)."""
    suffix = path.suffix.lower()
    if suffix in (".gz", ".bz2") and path.stat().st_size:
        kind = rapidgzip.RapidgzipFile if suffix == ".gz" else rapidgzip.IndexedBzip2File
        try:
            reader = kind(str(path), parallelization=threads)
        except ValueError as error:
            raise DumpError(f"{path}: truncated or damaged near byte 0 ({error})") from error
        with reader as packed:
            # tell_compressed counts bits
            yield packed, lambda: -(-packed.tell_compressed() // 8)
        return
    if suffix == ".zst":
        with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, "zstd") as packed:
            yield packed, raw.tell
        return
    with open(path, "rb") as raw:
        yield raw, raw.tell
