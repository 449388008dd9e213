"""What a downloaded file should be: of the kind that its name says, of its size, with its sums.

A firewall's page under the name of an archive, and an archive that is cut, are told by their bytes:
hosts send both with status 200.
"""

import hashlib
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from kgprobe.files import atomic

BLOCK = 1 << 20
#: What a file begins with, by the end of its name.
STARTS = {
    ".zip": (b"PK\x03\x04", b"PK\x05\x06"),
    ".gz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".zst": (b"\x28\xb5\x2f\xfd",),
}
KINDS = {".zip": "a zip archive", ".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
#: Bytes of a body that tell what it is, and characters of it that an error shows.
TOLD, SHOWN = 2048, 120
PAGE = re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", re.I | re.S)


def kind(path: Path) -> str:
    """In words, what a file of that name is."""
    return KINDS.get(path.suffix, "a file that is no web page")


def wrong_start(path: Path, first: bytes) -> str:
    """Why a file of that name cannot begin like this; nothing where it can."""
    if path.suffix in STARTS:
        right = any(first.startswith(start[: len(first)]) for start in STARTS[path.suffix])
        return "" if first and right else f"begins with {format_beginning(first)}"
    return f"a web page: {format_beginning(first)}" if PAGE.match(first) else ""


def wrong_form(path: Path, size: int | None = None, name: Path | None = None) -> str:
    """Why a file is not of the kind that its name (or `name`) says, or of another size."""
    name, got = name or path, path.stat().st_size
    if not got:
        return "is empty"
    with open(path, "rb") as stream:
        if wrong := wrong_start(name, stream.read(TOLD)):
            return wrong
    if name.suffix == ".zip" and not zipfile.is_zipfile(path):
        return f"{got:,} bytes of a zip archive without its end, the table of contents"
    return f"{got:,} bytes, expected {size:,}" if size not in (None, got) else ""


def wrong_sums(found: Mapping[str, str], known: Mapping[str, str]) -> str:
    """Which sums differ from those that are known."""
    return "; ".join(
        f"{name} is {found[name]}, expected {one}"
        for name, one in known.items()
        if found[name] != one.lower()
    )


def sums_of(path: Path, names: Iterable[str]) -> dict[str, str]:
    """The sums of a file by name (md5, sha1, sha256), in one pass."""
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in names}
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK):
            for digest in digests.values():
                digest.update(block)
    return {name: digest.hexdigest() for name, digest in digests.items()}


def record(path: Path, url: str, sha256: str) -> None:
    """Write beside a file where it came from and what it was then, as sha256sum reads it."""
    with atomic(_record(path)) as temporary:
        temporary.write_text(f"# {url}\n{sha256}  {path.name}\n", encoding="utf-8")


def recorded(path: Path) -> tuple[str, str]:
    """(address, sha256) of a file when it came; empty where it was put there by hand."""
    text = _record(path).read_text(encoding="utf-8") if _record(path).is_file() else ""
    found = re.match(r"# (\S+)\n([0-9a-f]{64})\b", text)
    return (found[1], found[2]) if found else ("", "")


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def format_beginning(first: bytes) -> str:
    """The beginning of what came, in one line."""
    text = " ".join(first.decode("utf-8", "replace").split())
    return repr(text[:SHOWN] + ("..." if len(text) > SHOWN else ""))
