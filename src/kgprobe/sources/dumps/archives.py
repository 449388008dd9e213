"""Zip archives: checked before anything of them is written.

    with opened(archive) as zipped:                # names and number of all members are sound
        data = read(archive, zipped, name)         # so are kind, size and packing of this one

GitHub, figshare and T-REx give zip archives; nothing else is unpacked (dumps are streams, read line
by line: stream.py).
"""

import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

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


class DamagedError(ArchiveError):
    """The bytes are no whole archive: another download may cure it."""


@dataclass(frozen=True)
class Limits:
    """How much of an archive is unpacked at most; defaults and reasons are the constants above."""

    members: int = MEMBERS
    member: int = MEMBER
    total: int = TOTAL
    ratio: float = RATIO
    small: int = SMALL


DEFAULT = Limits()


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
        raise DamagedError(
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


def write(archive: Path, zipped: zipfile.ZipFile, name: str, path: Path) -> None:
    """Write one checked member to `path`. Raises ArchiveError where it is shorter than said."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipped.open(name) as packed, open(path, "wb") as stream:
        shutil.copyfileobj(packed, stream)
        got, size = stream.tell(), zipped.getinfo(name).file_size
    if got != size:
        raise _refused(archive, name, f"{got:,} bytes, {size:,} announced")


def below(names: Iterable[str], wanted: str) -> dict[str, str]:
    """Those of the paths `names` that lie below (or at) the folder or file `wanted`: path -> its
    rest below it, empty for the file itself.

    `wanted` is the end of a path, with / behind it for a folder. Where several places fit, the one
    nearest to the top is taken. Raises ArchiveError where there is none, where two are equally
    near, and where what is there is a folder and not a file, or the other way round.
    """
    ends = PurePosixPath(wanted).parts
    found: dict[int, dict[tuple[str, ...], dict[str, str]]] = {}
    for name in names:
        parts = PurePosixPath(name).parts
        for place in range(len(parts) - len(ends) + 1):
            if parts[place : place + len(ends)] == ends:
                rest = "/".join(parts[place + len(ends) :])
                found.setdefault(place, {}).setdefault(parts[:place], {})[name] = rest
                break
    if not found:
        raise ArchiveError(f"no {wanted} in it")
    nearest = found[min(found)]
    if len(nearest) > 1:
        there = " and ".join("/".join((*above, wanted)) for above in sorted(nearest))
        raise ArchiveError(f"{wanted} could be {there}; name more of its path")
    made = next(iter(nearest.values()))
    if wanted.endswith("/") != all(made.values()):
        kinds = ("a file", "without") if wanted.endswith("/") else ("a folder", "with")
        raise ArchiveError(f"{wanted} is {kinds[0]} there: write it {kinds[1]} / at its end")
    return made
