"""GGUF files inside installed Python packages: whole, or in parts with a package for each.

    NAME          terms, SHA256SUMS of the whole; requires the packages of the parts
    NAME-part1    model.gguf.part00
    NAME-part2    model.gguf.part01

Packages are found by their metadata and never imported.
"""

import atexit
import copy
import csv
import hashlib
import importlib.metadata
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

SUMS = "SHA256SUMS"
PART = re.compile(r"\.gguf\.part-?(\d+)$")
#: files of a package that contain the terms of use of its weights
TERMS = re.compile(r"(notice|terms|licen[cs]e)", re.IGNORECASE)
#: maximum characters of terms that a log shows; for longer ones it shows the path
SHOWN = 2000


class PackedError(RuntimeError):
    """A package does not contain the expected GGUF file; the message says what it contains."""


@dataclass(frozen=True)
class Packed:
    """A GGUF file inside packages: its parts in order (one: a whole file), sha256 of the whole."""

    package: str
    paths: tuple[Path, ...]
    sha256: str


def packed(package: str, pinned: str = "") -> Packed:
    """Find the GGUF file in an installed package, or in the packages of its parts.

    `pinned` is its sha256 if that is known. Raises PackedError if a package or a part is missing or
    in the wrong order, and if the whole does not match `pinned` or the package's own SHA256SUMS.
    """
    files = list_files(package)
    whole = [path for path in files if path.name.endswith(".gguf")]
    parts = _parts(package)
    if len(whole) != 1 and (whole or not parts):
        raise PackedError(f"{len(whole)} GGUF files in {package}, expected one, or parts")
    paths = tuple(whole) or tuple(_joined_order(package, parts))
    lost = [path.name for path in paths if not path.is_file()]
    if lost:
        raise PackedError(f"{package}: {', '.join(lost)} is not there; install the package again")
    checksum = digest(paths)
    sums = [path for path in files if path.name == SUMS]
    stated = [_stated(sums[0])] if parts and sums else []
    for wanted, where in [(pinned, "the table of models"), *((sum_, SUMS) for sum_ in stated)]:
        if wanted and wanted != checksum:
            raise PackedError(
                f"{package}: the GGUF file has sha256 {checksum}, {where} says {wanted}: a part is "
                "damaged, of another version or in the wrong place; install the package again"
            )
    return Packed(package, paths, checksum)


@cache
def join_parts(file: Packed) -> Path:
    """Return a single file for transformers; parts are joined in a temporary folder."""
    if len(file.paths) == 1:
        return file.paths[0]
    # always printed: the user must see the terms before the first use
    print(terms(file.package), file=sys.stderr, flush=True)
    folder = tempfile.mkdtemp(prefix="kgprobe-gguf-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / f"{file.sha256}.gguf"
    with open(path, "wb") as stream:
        for part in file.paths:
            with open(part, "rb") as source:
                shutil.copyfileobj(source, stream, 1 << 22)
    return path


@contextmanager
def read_once() -> Iterator[None]:
    """Make transformers parse a GGUF file once. For one model it opens the file three times, reads
    its vocabulary each time, and rebuilds the table of tensor names for every tensor. The reader
    slices a plain view of the file: slicing a memmap is five times slower."""
    try:
        import gguf
        from transformers import modeling_gguf_pytorch_utils as reading
    except ImportError:
        yield
        return

    class Reader(gguf.GGUFReader):
        @property
        def data(self) -> Any:
            return self._view

        @data.setter
        def data(self, value: Any) -> None:
            self._view = np.asarray(value)

    plain = reading.load_gguf_checkpoint
    metadata = cache(plain)

    def load(path: str, return_tensors: bool = False, **options: Any) -> dict[str, Any]:
        if return_tensors:
            return plain(path, return_tensors=True, **options)  # type: ignore[no-any-return]
        return copy.deepcopy(metadata(path))

    within = [
        (gguf, "GGUFReader", cache(Reader)),
        (gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map)),
        (reading, "load_gguf_checkpoint", load),
    ]
    with ExitStack() as restored:
        for module, name, one in within:
            restored.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, one)
        yield


def terms(package: str) -> str:
    """Return the terms of use of a package's weights: short texts in full, others by path."""
    texts = []
    for path in list_files(package):
        if TERMS.search(path.name) and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            texts.append(text if len(text) <= SHOWN else str(path))
    return "\n".join([f"Terms of use of {package}:", *(texts or ["it states none"])])


def digest(paths: Iterable[Path]) -> str:
    """Return the sha256 of concatenated files."""
    checksum = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as stream:
            while block := stream.read(1 << 22):
                checksum.update(block)
    return checksum.hexdigest()


def list_files(package: str) -> list[Path]:
    """Return the files that a package's RECORD lists, whether they exist or not.

    From Python 3.12 on, `importlib.metadata.files` leaves out missing files. Raises
    PackedError for a package that is not installed.
    """
    if not package:
        raise PackedError("source 'gguf:' names no package; expected gguf:PACKAGE")
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        raise PackedError(
            f"the package {package} is not installed; `make setup` installs what the default run "
            f"needs, `pip install {package}` any other"
        ) from None
    record = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    return sorted(Path(str(distribution.locate_file(row[0]))) for row in record if row)


def _parts(package: str) -> list[tuple[int, str]]:
    """Return (number, package) of the parts that a package requires, in order."""
    wanted = re.compile(re.escape(_normal(package)) + r"-part-?(\d+)")
    names = [re.split(r"[^\w.-]", line)[0] for line in importlib.metadata.requires(package) or []]
    matches = [(match, name) for name in names if (match := wanted.fullmatch(_normal(name)))]
    parts = sorted((int(match[1]), name) for match, name in matches)
    numbers = [number for number, _ in parts]
    if numbers != list(range(1, len(parts) + 1)):
        raise PackedError(f"{package} requires its parts {numbers}, which are not 1, 2, ...")
    return parts


def _joined_order(package: str, parts: list[tuple[int, str]]) -> list[Path]:
    """Return the file of each part, checking that file numbers are in the order of the packages."""
    paths, first = [], 0
    for number, name in parts:
        try:
            held = [path for path in list_files(name) if PART.search(path.name)]
        except PackedError:
            raise PackedError(
                f"part {number} of {len(parts)} of {package} is missing: the package {name} is "
                "not installed"
            ) from None
        if len(held) != 1:
            raise PackedError(f"{len(held)} parts of a GGUF file in {name}, expected one")
        (counted,) = PART.findall(held[0].name)
        first = int(counted) if number == 1 else first
        if int(counted) != first + number - 1:
            raise PackedError(
                f"{name} holds {held[0].name}: part {number} of {len(parts)} of {package} should "
                f"be number {first + number - 1}; the parts are in the wrong order"
            )
        paths.append(held[0])
    return paths


def _stated(path: Path) -> str:
    """Return the checksum of the only file that SHA256SUMS lists."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(lines) != 1 or not re.fullmatch(r"[0-9a-f]{64}", lines[0][0]):
        raise PackedError(f"{path}: one line 'sha256  file' was expected")
    return lines[0][0]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
