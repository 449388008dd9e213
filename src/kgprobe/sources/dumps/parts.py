"""Read dumps in parts: each block of text is read by a job of its own, and its tables are kept.

    folder/0123456789ab-latest-all/  the parts of a file, under a hash of it and the question
        part-00001/                  the tables of one block, written atomically
        complete                     number of parts, written when the file was read to its end

One process decompresses, with as many threads as `threads`, and as many others parse its blocks.
A stop loses only the unfinished parts; a later run decompresses the file again, but parses only
the parts that are missing.
"""

import concurrent.futures as futures
import contextlib
import hashlib
import json
import multiprocessing
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.job import log, progress
from kgprobe.sources.dumps.download import BEGINNING, KINDS, recorded, wrong_start
from kgprobe.sources.dumps.stream import BLOCK, DumpError, LineBlock, blocks

#: Bytes at each end of a file that are part of its fingerprint.
ENDS = 1 << 20


#: A picklable function that returns the tables of a block by name, the same for every block.
Reader = Callable[[LineBlock], Mapping[str, pl.DataFrame]]


def read(
    readings: Sequence[tuple[Path, Reader]],
    question: Mapping[str, object],
    folder: Path,
    size: int = BLOCK,
    threads: int = 1,
) -> tuple[dict[str, pl.LazyFrame], pl.DataFrame]:
    """Return the tables of all parts of all files, by name, and UNREAD; parts are in `folder`.

    `question`: what is read, as JSON; parts of other questions or other files are not used. Raises
    DumpError for a truncated or damaged dump (finished parts stay).
    """
    parts: list[tuple[str, Path]] = []
    for (path, reader), name in zip(readings, file_names([p for p, _ in readings]), strict=True):
        what = {"file": _identity(path), "bytes of a part": size, **question}
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]
        place = folder / f"{key}-{path.name.partition('.')[0]}"
        _read(path, reader, place, size, threads)
        parts += [(name, part) for part in sorted(place.glob("part-*"))]
    unread = pl.concat(
        pl.read_parquet(part / "unread.parquet").select(pl.lit(name).alias("file"), "line", "first")
        for name, part in parts
    ).sort("file", "line", "first")
    for file, line, first in unread.head(5).rows():
        log.warning("%s, line %d is not read: %s", file, line, first[:80])
    if unread.height:
        log.warning("%d lines passed a filter and were not read", unread.height)
    names = sorted({path.stem for path in parts[0][1].iterdir()} - {"unread"})
    return {n: pl.scan_parquet([p / f"{n}.parquet" for _, p in parts]) for n in names}, unread


def file_names(paths: Sequence[Path]) -> list[str]:
    """Return the name of each file, or its path if a file of another folder has the same name."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else str(path) for path in paths]


def _identity(path: Path) -> dict[str, int | str]:
    """Return a fingerprint of a file: size, checksum at download, first and last bytes. Hashing a
    whole dump would take as long as decompressing it."""
    size = path.stat().st_size
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        digest.update(stream.read(ENDS))
        stream.seek(max(0, size - ENDS))
        digest.update(stream.read(ENDS))
    return {"bytes": size, "sha256 of both ends": digest.hexdigest(), "sha256": recorded(path)[1]}


def _read(path: Path, reader: Reader, folder: Path, size: int, threads: int) -> None:
    complete = folder / "complete"
    if complete.exists():
        return
    for begun in folder.glob("*.begun"):
        shutil.rmtree(begun)
    if done := {path.name for path in folder.glob("part-*")}:
        log.info("%s: %d parts are there; the others are read", folder, len(done))
    number, first, block = 0, b"", LineBlock(0, b"")
    unpacked = Path(path.stem if path.suffix in KINDS else path.name)
    with (
        progress(total=path.stat().st_size, desc=path.name, unit="B") as bar,
        _workers(threads, reader) as work,
    ):
        for number, block in enumerate(blocks(path, size, threads), 1):
            if number == 1 and (wrong := wrong_start(unpacked, block.data[:BEGINNING])):
                raise DumpError(f"{path}: {wrong}; expected lines of a dump")
            first = first or block.data[:100].lstrip()[:1]
            part = folder / f"part-{number:05d}"
            if part.name not in done:
                work(block, part)
            bar.update(block.compressed - bar.n)
    if not number:
        raise DumpError(f"{path}: the dump is empty")
    if first == b"[" and block.data[-100:].rstrip()[-1:] != b"]":  # lines of JSON are an array
        raise DumpError(
            f"{path}: truncated after line {block.lines:,}: the array that it begins does not "
            "end; download it again, finished parts are kept"
        )
    with schema.atomic(complete) as temporary:
        temporary.write_text(f"{number}\n")


def _part(reader: Reader, block: LineBlock, part: Path, text: Path | None = None) -> None:
    """Read a block, or the one that another process wrote to the file `text`, which is deleted, and
    write its tables, all of which appear at once."""
    if text is not None:
        block = LineBlock(block.before, text.read_bytes())
        text.unlink()
    begun = part.with_name(f"{part.name}.begun")
    begun.mkdir(parents=True)
    for name, frame in reader(block).items():
        frame.write_parquet(begun / f"{name}.parquet")
    begun.rename(part)


@contextlib.contextmanager
def _workers(threads: int, reader: Reader) -> Iterator[Callable[[LineBlock, Path], None]]:
    """Yield a function that has a part read by `threads` processes, or by this one if `threads` is
    1. It blocks while one more block than processes is pending, so memory stays bounded. A block is
    handed over in a file, because a pipe would copy it six times."""
    if threads == 1:
        yield partial(_part, reader)
        return
    # spawn, because decompressing threads may hold locks, which a fork would copy
    spawned = multiprocessing.get_context("spawn")
    with (
        _no_script(),
        tempfile.TemporaryDirectory(prefix="kgprobe-blocks-") as folder,
        futures.ProcessPoolExecutor(threads, mp_context=spawned) as pool,
    ):
        running: set[futures.Future[None]] = set()

        def work(block: LineBlock, part: Path) -> None:
            nonlocal running
            if len(running) > threads:
                done, running = futures.wait(running, return_when=futures.FIRST_COMPLETED)
                for finished in done:
                    finished.result()
            text = Path(folder) / f"{part.parent.name}-{part.name}"
            text.write_bytes(block.data)
            running.add(pool.submit(_part, reader, LineBlock(block.before, b""), part, text))

        yield work
        for finished in running:
            finished.result()


@contextlib.contextmanager
def _no_script() -> Iterator[None]:
    """Keep new processes from running the main script, which is a rule's script here."""
    script = sys.modules["__main__"].__dict__
    file = script.pop("__file__", None)
    try:
        yield
    finally:
        if file is not None:
            script["__file__"] = file
