"""Files from elsewhere: a polite, resumable, checked download (sources.md, section 9), and released
archives, checked before anything of them is written.

A file appears under its name only when its size and checksum hold. Until then `NAME.part` and
`NAME.part.json` (URL, validators, expected size) lie beside it, and the next call goes on there.

    with opened(archive) as zipped:                # names and number of all members are sound
        data = read(archive, zipped, [name])       # so are kind, size and packing of these

GitHub, figshare and T-REx give zip archives; nothing else is unpacked (dumps are streams, read line
by line: stream.py).
"""

import json
import random
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import requests
from filelock import FileLock

from kgprobe.http import (
    LONGEST_WAIT,
    Line,
    NoAnswerError,
    PassingError,
    Patience,
    backoff,
    retried,
    retry_after,
)
from kgprobe.job import log, progress
from kgprobe.job import sha256 as hash_file

BLOCK = 1 << 20
ATTEMPTS = 6
PATIENCE = Patience(connect=10, read=60)


class DownloadError(RuntimeError):
    """A download failed for good; the message names URL, file, what came and what to do."""


class ChecksumMismatchError(DownloadError):
    """The complete file has another checksum than pinned; it is kept beside as `.bad`."""


def download(
    url: str,
    path: Path,
    *,
    agent: str,
    sha256: str | None = None,
    size: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
    seed: int = 0,
) -> str:
    """Download `url` to `path` and return its sha256; a file that is there is only checked.

    `agent` is the User-Agent. `sha256` and `size` are checked where given. Two processes may ask
    for the same file: the second waits for the first. Raises DownloadError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.exists():
            waits = random.Random(seed)
            try:
                retried(
                    lambda: _attempt(url, path, agent, size),
                    ATTEMPTS,
                    wait=lambda number, error: max(error.asked or 0.0, backoff(number, waits)),
                    sleep=sleep,
                    before=lambda number, error, seconds: log.info(
                        "%s: %s; next attempt in %.0f s", url, error, seconds
                    ),
                )
            except PassingError as error:
                raise DownloadError(
                    f"{url}: {error}; gave up after {ATTEMPTS} attempts. "
                    f"What arrived stays in {path.name}.part; run again to go on from there"
                ) from error
            _accept(url, path, sha256, size)
    found = hash_file(path)
    if sha256 and found != sha256:
        raise ChecksumMismatchError(f"{path}: sha256 is {found}, pinned is {sha256}; remove it")
    return found


def _attempt(url: str, path: Path, agent: str, size: int | None) -> None:
    """One request that adds to the part, which is complete then. Raises PassingError."""
    part, side = _part(path), _side(path)
    state = json.loads(side.read_text()) if side.exists() else {}
    if state.get("url") != url:
        part.unlink(missing_ok=True)
        state = {"url": url}
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": agent, "Accept-Encoding": "identity"}
    validator = state.get("etag") or state.get("modified")
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    else:
        have = 0
    try:
        with Line() as line, line.opened("GET", url, PATIENCE, headers=headers) as answer:
            if answer.status_code == 416:
                _range_refused(answer, part, have)
            elif answer.status_code in (429, 500, 502, 503, 504):
                raise PassingError(f"status {answer.status_code}", _asked(url, answer))
            elif answer.status_code not in (200, 206):
                raise DownloadError(f"{url}: status {answer.status_code} {answer.reason}")
            else:
                _receive(answer, path, state, have, size)
    except NoAnswerError as error:
        raise PassingError(str(error)) from error


def _receive(
    answer: requests.Response, path: Path, state: dict[str, Any], have: int, size: int | None
) -> None:
    """Write the body behind what is there; the answer decides whether that may stay."""
    part = _part(path)
    if answer.status_code == 206:
        start = answer.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0]
        if start != str(have):
            part.unlink(missing_ok=True)
            raise PassingError(f"Content-Range starts at {start!r}, asked for {have}: begin again")
    elif have:
        log.info("%s: the file changed or ranges are unknown; begin again", answer.url)
        have = 0
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length else size
    if total:
        _require_space(path, int((total - have) * 1.05))
    etag = answer.headers.get("ETag", "")
    state |= {
        # a weak validator does not vouch for the bytes
        "etag": "" if etag.startswith("W/") else etag,
        "modified": answer.headers.get("Last-Modified", ""),
        "total": total,
    }
    _side(path).write_text(json.dumps(state))
    with open(part, "ab" if have else "wb") as stream:
        bar = progress(total=total, desc=path.name, unit="B")
        bar.update(have)
        for block in answer.iter_content(BLOCK):
            stream.write(block)
            bar.update(len(block))
        bar.close()
    got = part.stat().st_size
    if total is not None and got < total:
        raise PassingError(f"{got} of {total} bytes arrived")


def _range_refused(answer: requests.Response, part: Path, have: int) -> None:
    """After 416: the part is complete when the server's size says so, else begin again."""
    total = answer.headers.get("Content-Range", "").rpartition("/")[2]
    if total != str(have):
        part.unlink(missing_ok=True)
        raise PassingError(
            f"the server refused to go on from byte {have} of {total or 'unknown'}: begin again"
        )


def _asked(url: str, answer: requests.Response) -> float | None:
    """Seconds that the server asks for."""
    wait = retry_after(answer.headers.get("Retry-After"), answer.status_code, time.time())
    if wait is not None and wait > LONGEST_WAIT:
        raise DownloadError(f"{url}: the server asks to wait {wait:.0f} s; run again after that")
    return wait


def _accept(url: str, path: Path, sha256: str | None, size: int | None) -> None:
    """Give the complete part its name, or keep it as `.bad` when size or checksum are wrong."""
    part = _part(path)
    found, got = hash_file(part), part.stat().st_size
    if (sha256 and found != sha256) or (size is not None and got != size):
        bad = path.with_name(path.name + ".bad")
        part.replace(bad)
        _side(path).unlink(missing_ok=True)
        raise ChecksumMismatchError(
            f"{url}: got sha256 {found}, {got} bytes; expected sha256 {sha256 or 'any'}, "
            f"{'any number of' if size is None else size} bytes. Kept as {bad.name}"
        )
    part.replace(path)
    _side(path).unlink(missing_ok=True)


def _require_space(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise DownloadError(f"{path}: needs {needed:,} bytes, {free:,} are free on its disk")


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _side(path: Path) -> Path:
    return path.with_name(path.name + ".part.json")


#: What is read of BEAR and of OntoProbe; the latter has a folder of scripts called memorizing, too.
BEAR = ("BEAR", "BEAR-big", "relation_info.json")
ONTOPROBE = ("data/ontology", "data/memorizing")
#: Members of an archive, folders counted; the largest that the full configuration names has 772.
MEMBERS = 100_000
#: Bytes of one member; the largest are T-REx's files: 10,000 documents, 21 MB packed 15 fold.
MEMBER = 2 << 30
#: Bytes of all members that are unpacked together; the released sets have up to 8 * 10^6.
TOTAL = 4 << 30
#: Unpacked bytes per packed byte. Released archives pack at most 5 fold, T-REx 15, Wikidata's dumps
#: about 20; what was made for it packs 1,032 fold (deflate) or more.
RATIO = 100
#: Bytes below which a ratio says nothing: a file of blanks is no bomb.
SMALL = 1 << 20
#: What the archives named above use; others have no bound on what one block unpacks to.
PACKINGS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
ENCRYPTED = 0x1


class ArchiveError(ValueError):
    """An archive is damaged, unsafe or lacks a part; the message names archive, member and why."""


@dataclass(frozen=True)
class Limits:
    """How much of an archive is unpacked at most; defaults and reasons are the constants above."""

    members: int = MEMBERS
    member: int = MEMBER
    total: int = TOTAL
    ratio: float = RATIO
    small: int = SMALL


DEFAULT = Limits()


def unpack(
    archive: Path, folder: Path, names: Sequence[str], limits: Limits = DEFAULT
) -> list[Path]:
    """Put the folders or files `names` of the zip `archive` into `folder`, each by its last name.

    They may lie below any top folder. Each appears whole or not at all. Raises ArchiveError when
    one is missing, the archive is damaged, or it is not safe to unpack: then nothing is written.
    """
    return unpack_as(archive, folder, {PurePosixPath(name).name: name for name in names}, limits)


def unpack_as(
    archive: Path, folder: Path, parts: Mapping[str, str], limits: Limits = DEFAULT
) -> list[Path]:
    """The same, each under a name of its own: `parts` is name -> path (its end) in the archive.

    Where several places fit, the one nearest to the top is taken; two equally near are an error.
    """
    made = []
    with opened(archive, limits) as zipped:
        files = [name for name in zipped.namelist() if not name.endswith("/")]
        found = {target: _members(archive, files, wanted) for target, wanted in parts.items()}
        check(archive, zipped, [name for members in found.values() for name in members], limits)
        for target, members in found.items():
            final = folder / target
            temporary = final.with_name(f".{final.name}.part")
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.unlink(missing_ok=True)
            for name, below in members.items():
                _write(archive, zipped, name, temporary / below if below else temporary)
            shutil.rmtree(final, ignore_errors=True)
            temporary.replace(final)
            made.append(final)
    return made


def read(archive: Path, zipped: zipfile.ZipFile, name: str, limits: Limits = DEFAULT) -> bytes:
    """The bytes of one member of an archive that `opened` gave; ArchiveError when it is unsafe."""
    check(archive, zipped, [name], limits)
    return zipped.read(name)


@contextmanager
def opened(archive: Path, limits: Limits = DEFAULT) -> Iterator[zipfile.ZipFile]:
    """The zip archive, its table of contents checked.

    Raises ArchiveError where members are too many, have names that lead out of a folder or that
    overwrite each other, or where the archive proves to be damaged while it is used.
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            _check_names(archive, zipped.infolist(), limits)
            yield zipped
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ArchiveError(
            f"{archive}: not a sound zip archive ({error}); remove it to fetch it again"
        ) from error


def check(
    archive: Path, zipped: zipfile.ZipFile, names: Sequence[str], limits: Limits = DEFAULT
) -> None:
    """Whether these members may be unpacked: plain files, legible, and no bomb; else ArchiveError.

    Sizes are those that the archive declares; zipfile gives no byte more than that.
    """
    infos = [zipped.getinfo(name) for name in names]
    for info in infos:
        if wrong := _kind(info):
            raise _refused(archive, info.filename, wrong)
        if info.file_size > limits.member:
            raise _refused(
                archive,
                info.filename,
                f"{info.file_size:,} bytes, more than the {limits.member:,} that a member may have",
            )
        _check_ratio(archive, info.filename, info.file_size, info.compress_size, limits)
    total = sum(info.file_size for info in infos)
    if total > limits.total:
        raise ArchiveError(
            f"{archive}: {total:,} bytes in {len(infos):,} members, more than the "
            f"{limits.total:,} that are unpacked from one archive"
        )
    # members that lie over each other have small packed sizes each; the file has but one
    whole = archive.stat().st_size
    if infos:
        _check_ratio(archive, f"{infos[0].filename} to {names[-1]}", total, whole, limits)


def _check_names(archive: Path, infos: Sequence[zipfile.ZipInfo], limits: Limits) -> None:
    if len(infos) > limits.members:
        raise ArchiveError(
            f"{archive}: {len(infos):,} members, more than the {limits.members:,} allowed"
        )
    places: dict[PurePosixPath, str] = {}
    for info in infos:
        name = info.filename
        windows = PureWindowsPath(name)
        if name.startswith("/") or windows.drive or windows.root:
            raise _refused(archive, name, "an absolute path")
        if ".." in windows.parts:  # either slash separates there
            raise _refused(archive, name, "leads out of its folder with ..")
        path = PurePosixPath(name)
        if not path.parts:
            raise _refused(archive, name, "no name")
        if path in places:
            raise _refused(archive, name, f"there twice ({places[path]!r} before)")
        places[path] = name
    files = {path for path, name in places.items() if not name.endswith("/")}
    for path, name in places.items():
        if above := files.intersection(path.parents):
            raise _refused(archive, name, f"below {str(above.pop())!r}, which is a file")


def _kind(info: zipfile.ZipInfo) -> str:
    """What a member is that is no plain, legible file; nothing where it is one."""
    mode = stat.S_IFMT(info.external_attr >> 16)  # 0 where the packing system has no modes
    if mode == stat.S_IFLNK:
        return "a link"
    if mode not in (0, stat.S_IFREG):
        return f"neither file nor folder (mode {mode:o})"
    if info.flag_bits & ENCRYPTED:
        return "encrypted"
    if info.compress_type not in PACKINGS:
        return f"packed by method {info.compress_type}; only stored and deflated ones are read"
    return ""


def _check_ratio(archive: Path, name: str, size: int, packed: int, limits: Limits) -> None:
    if size > limits.small and size > limits.ratio * packed:
        raise _refused(
            archive,
            name,
            f"{size:,} bytes packed into {packed:,}, more than {limits.ratio:g} fold",
        )


def _refused(archive: Path, name: str, wrong: str) -> ArchiveError:
    return ArchiveError(f"{archive}, member {name!r}: {wrong}; nothing of it is unpacked")


def _write(archive: Path, zipped: zipfile.ZipFile, name: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipped.open(name) as packed, open(path, "wb") as stream:
        shutil.copyfileobj(packed, stream)
        got, size = stream.tell(), zipped.getinfo(name).file_size
    if got != size:
        raise _refused(archive, name, f"{got:,} bytes, {size:,} announced")


def _members(archive: Path, names: Sequence[str], wanted: str) -> dict[str, str]:
    """Archive members below (or at) the folder or file `wanted`, with their path below it."""
    ends = PurePosixPath(wanted).parts
    found: dict[int, dict[tuple[str, ...], dict[str, str]]] = {}
    for name in names:
        parts = PurePosixPath(name).parts
        for place in range(len(parts) - len(ends) + 1):
            if parts[place : place + len(ends)] == ends:
                below = "/".join(parts[place + len(ends) :])
                found.setdefault(place, {}).setdefault(parts[:place], {})[name] = below
                break
    if not found:
        raise ArchiveError(f"{archive}: no {wanted} in it")
    nearest = found[min(found)]
    if len(nearest) > 1:
        there = " and ".join("/".join((*above, wanted)) for above in sorted(nearest))
        raise ArchiveError(f"{archive}: {wanted} could be {there}; name more of its path")
    return next(iter(nearest.values()))
