"""Dumps in parts: each block of text is read by a job of its own, and kept.

    folder/question.json             the files and what is read from them
    folder/0-latest-all/part-00001/  the tables of one block, there whole or not at all
    folder/0-latest-all/complete     how many parts there are: the file was read to its end

One process unpacks, on as many cores as there are threads, and as many others read what it gives.
A stop loses the parts that were under way; a later run unpacks what was read before, parses none of
it, and goes on.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import log, progress
from kgprobe.sources.dumps.download import BEGINNING, KINDS, recorded, wrong_start
from kgprobe.sources.dumps.stream import BLOCK, DumpError, LineBlock, blocks

#: Bytes at each end of a file that it is known by.
ENDS = 1 << 20


@dataclass(frozen=True)
class Reading:
    """How a file is read: `reader` is a function of a module that gives tables by name, the same
    ones for every block, called with it and `arguments`. `closed`: an array whose end must be
    there, where it has a beginning."""

    path: Path
    reader: Callable[..., Mapping[str, pl.DataFrame]]
    arguments: tuple[Any, ...]
    closed: bool = False


def read(
    readings: Sequence[Reading],
    question: Mapping[str, object],
    folder: Path,
    size: int = BLOCK,
    threads: int = 1,
) -> dict[str, pl.LazyFrame]:
    """The tables of all parts of all files, by name; parts lie in `folder`.

    `question`: what is read, as JSON. Raises DumpError for a cut or damaged dump (finished parts
    stay), and ValueError when `folder` holds parts of other files or another question.
    """
    files = {one.path.name: _identity(one.path) for one in readings if one.path.exists()}
    _require_same_question({"files": files, "bytes of a part": size, **question}, folder)
    for number, one in enumerate(readings):
        _read(one, folder / f"{number}-{one.path.name.partition('.')[0]}", size, threads)
    paths = sorted(folder.glob("*/part-*"))
    names = sorted(path.stem for path in paths[0].iterdir())
    return {name: pl.scan_parquet([path / f"{name}.parquet" for path in paths]) for name in names}


def _identity(path: Path) -> dict[str, int | str]:
    """Fingerprint of a file: size, checksum of the download, first and last bytes. The sum of a
    whole dump would take as long as unpacking it."""
    size = path.stat().st_size
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        digest.update(stream.read(ENDS))
        stream.seek(max(0, size - ENDS))
        digest.update(stream.read(ENDS))
    return {"bytes": size, "sha256 of both ends": digest.hexdigest(), "sha256": recorded(path)[1]}


def _require_same_question(question: Mapping[str, object], folder: Path) -> None:
    """Parts may only be continued for the files and the question that they were begun for."""
    note = folder / "question.json"
    if note.exists():
        before = json.loads(note.read_text())
        if differing := [key for key in question if question[key] != before.get(key)]:
            raise ValueError(
                f"{folder}: begun for another {' and '.join(differing)} "
                f"({before.get(differing[0])!r}, now {question[differing[0]]!r}); name another "
                "snapshot in the config or remove the folder"
            )
        return
    with schema.atomic(note) as temporary:
        temporary.write_text(json.dumps(question, indent=1, sort_keys=True) + "\n")


def _read(one: Reading, folder: Path, size: int, threads: int) -> None:
    complete = folder / "complete"
    if complete.exists():
        return
    for begun in folder.glob("*.begun"):
        shutil.rmtree(begun)
    if done := {path.name for path in folder.glob("part-*")}:
        log.info("%s: %d parts are there; the others are read", folder, len(done))
    number, first, block = 0, b"", LineBlock(0, b"")
    total = one.path.stat().st_size if one.path.exists() else None
    with (
        progress(total=total, desc=one.path.name, unit="B") as bar,
        _workers(threads) as work,
        blocks(one.path, size, threads) as stream,
    ):
        for number, block in enumerate(stream, 1):
            unpacked = Path(one.path.stem if one.path.suffix in KINDS else one.path.name)
            if number == 1 and (wrong := wrong_start(unpacked, block.data[:BEGINNING])):
                raise DumpError(f"{one.path}: {wrong}; expected lines of a dump")
            first = first or block.data[:100].lstrip()[:1]
            part = folder / f"part-{number:05d}"
            if part.name not in done:
                work(block, one, part)
            bar.update(block.compressed - bar.n)
    if not number:
        raise DumpError(f"{one.path}: the dump is empty")
    if one.closed and first == b"[" and block.data[-100:].rstrip()[-1:] != b"]":
        raise DumpError(
            f"{one.path}: truncated after line {block.lines:,}: the array that it begins does not "
            "end; download it again, finished parts are kept"
        )
    with schema.atomic(complete) as temporary:
        temporary.write_text(f"{number}\n")


def _part(block: LineBlock, one: Reading, part: Path) -> None:
    """Read a block and write its tables; they appear together."""
    begun = part.with_name(f"{part.name}.begun")
    begun.mkdir(parents=True)
    for name, frame in one.reader(block, *one.arguments).items():
        frame.write_parquet(begun / f"{name}.parquet")
    begun.rename(part)


def _read_from_file(text: Path, before: int, one: Reading, part: Path) -> None:
    """Read the block that another process left in a file, which goes."""
    block = LineBlock(before, text.read_bytes())
    text.unlink()
    _part(block, one, part)


@contextlib.contextmanager
def _workers(threads: int) -> Iterator[Callable[[LineBlock, Reading, Path], None]]:
    """A function that has a part read, in `threads` processes where there are more than one. It
    waits while each process has one block to read and one to come: memory stays bounded. A block's
    text is handed over in a file: through a pipe it would be copied six times."""
    if threads == 1:
        yield _part
        return
    # threads unpack while processes start: a fork would copy locks that they hold
    spawned = multiprocessing.get_context("spawn")
    with (
        _no_script(),
        tempfile.TemporaryDirectory(prefix="kgprobe-blocks-") as folder,
        futures.ProcessPoolExecutor(threads, mp_context=spawned) as pool,
    ):
        running: set[futures.Future[None]] = set()

        def work(block: LineBlock, one: Reading, part: Path) -> None:
            nonlocal running
            if len(running) > threads:
                done, running = futures.wait(running, return_when=futures.FIRST_COMPLETED)
                for finished in done:
                    finished.result()
            text = Path(folder) / f"{part.parent.name}-{part.name}"
            text.write_bytes(block.data)
            running.add(pool.submit(_read_from_file, text, block.before, one, part))

        yield work
        for finished in running:
            finished.result()


@contextlib.contextmanager
def _no_script() -> Iterator[None]:
    """New processes run the script that started them from its top, which a rule's must not be."""
    script = sys.modules["__main__"].__dict__
    file = script.pop("__file__", None)
    try:
        yield
    finally:
        if file is not None:
            script["__file__"] = file
