"""Results of single batches on disk: a stopped run loses only the batch in progress.

    with keep_steps(loaded, folder / "ranks.journal", identity):
        ...  # every step in here is read if it is stored, else computed

Steps come in the order of the plan, which depends only on the inputs: the file is read in one pass,
and batches and last bits are the same as in an uninterrupted run. A step that contains other steps
replaces them in the file when it ends. A file with another identity is started anew.
"""

import errno
import fcntl
import hashlib
import io
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgprobe.files import full_disk

#: bytes of the identity at the start of the file, and of length and checksum before every step
IDENTITY, LENGTH, CHECKSUM = 32, 8, 16
#: in the identity: files of other formats are started anew
FORMAT = 2
#: exceptions of pickle for bytes that are not a step
DAMAGED = (pickle.UnpicklingError, EOFError, LookupError, ValueError, TypeError, AttributeError,
           ImportError, ArithmeticError, MemoryError)  # fmt: skip


class Journal:
    """Steps of one computation; without a path nothing is stored."""

    def __init__(self, path: Path | None = None, identity: str = "") -> None:
        self._file: Any = None
        if path is None:
            return
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch()
        file = open(path, "r+b", buffering=0)  # noqa: SIM115  (open as long as the journal)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another run computes the same: both compute it
            file.close()
            return
        except OSError:  # a file system without locks
            pass
        digest = hashlib.sha256(f"{FORMAT} {identity}".encode()).digest()
        if file.read(IDENTITY) != digest:
            file.seek(0)
            file.truncate()
            self._write(file, digest)
        self._file = file

    def step(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the stored result of the step, or else compute and store it: numbers, texts,
        arrays, and tuples, lists and dictionaries of them."""
        if self._file is None:
            return compute()
        start = self._file.tell()
        entry = self._next()
        if entry is not None and entry[0] == name:
            return entry[1]
        self._file.seek(start)
        value = compute()
        data = pickle.dumps((name, value))
        # the rest of the file contains the steps within this one, or those of another plan
        self._file.seek(start)
        self._file.truncate()
        self._write(self._file, len(data).to_bytes(LENGTH, "big") + checksum(data) + data)
        return value

    def _write(self, file: Any, data: bytes) -> None:
        """Write all of it; on a nearly full disk a write may be partial."""
        try:
            is_whole = file.write(data) == len(data)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            is_whole = False
        if not is_whole:
            raise full_disk(self._path)

    def _next(self) -> tuple[str, Any] | None:
        """Return the step at the current file position; None at the end, where a stop or a full
        disk may have cut a step off, and a power cut may have left zeros."""
        size = int.from_bytes(self._file.read(LENGTH), "big")
        if not 0 < size <= os.fstat(self._file.fileno()).st_size:
            return None
        known, data = self._file.read(CHECKSUM), self._file.read(size)
        if known != checksum(data):
            return None
        try:
            entry = _Plain(io.BytesIO(data)).load()
        except DAMAGED:
            return None
        return entry if isinstance(entry, tuple) and len(entry) == 2 else None

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


def checksum(data: bytes) -> bytes:
    """Return the checksum of a step."""
    return hashlib.blake2b(data, digest_size=CHECKSUM).digest()


class _Plain(pickle.Unpickler):
    """Unpickles only arrays and plain values, since results may come from somebody else."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in ("_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer"):
            raise pickle.UnpicklingError(f"{module}.{name} is not a plain value")
        return super().find_class(module, name)


@contextmanager
def keep_steps(loaded: Any, path: Path | None = None, identity: str = "") -> Iterator[None]:
    """Store the steps of a model in a file inside the context; without a path store none."""
    before, loaded.journal = loaded.journal, Journal(path, identity)
    try:
        yield
    finally:
        loaded.journal.close()
        loaded.journal = before
