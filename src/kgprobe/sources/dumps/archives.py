"""Zip archives: checked before anything of them is written, and each file against its pin.

    with open_archive(archive) as zipped:          # names and number of all members are legal
        data = read(archive, zipped, name)         # so are kind, size and packing of this one
    unpack(archive, Path("data/bear/ace91fd"), {"BEAR": "BEAR/"}, tree)

`parts` is name in the folder -> path in the archive, of a folder with / at its end. GitHub,
figshare and T-REx give zip archives; nothing else is unpacked (dumps are streams: stream.py).
"""

import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from kgprobe.sources.dumps.lock_file import LockError, Tree, blob

#: Names that an error or a note shows of many.
SHOWN = 5
#: What is unpacked of an archive at most: members, folders counted (of the full configuration up to
#: 772), bytes of one (T-REx's files have 21 MB, packed 15 fold) and of all that are unpacked
#: together (of the released sets up to 8 * 10^6).
MEMBERS, MEMBER, TOTAL = 100_000, 2 << 30, 4 << 30
#: Unpacked bytes per packed byte, of members of more than SMALL bytes. Released archives pack at
#: most 5 fold, T-REx 15, Wikidata's dumps about 20; archives that attack 1,032 fold or more.
RATIO, SMALL = 100, 1 << 20
#: What the archives named above use; others have no bound on what one block unpacks to.
PACKINGS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
ENCRYPTED = 0x1


class ArchiveError(ValueError):
    """An archive is damaged, unsafe or lacks a part; the message names archive, member and why."""


class DamagedError(ArchiveError):
    """The bytes are no whole archive: another download may cure it."""


def read(archive: Path, zipped: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of one member of an archive that is open; ArchiveError when it is unsafe."""
    check(archive, zipped, [name])
    return zipped.read(name)


@contextmanager
def open_archive(archive: Path) -> Iterator[zipfile.ZipFile]:
    """The zip archive, its table of contents checked.

    Raises ArchiveError where members are too many, have names that lead out of a folder or that
    overwrite each other, or where the archive proves to be damaged while it is used.
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            _check_names(archive, zipped.namelist())
            yield zipped
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DamagedError(
            f"{archive}: not a complete zip archive ({error}); remove it and run again"
        ) from error


def check(archive: Path, zipped: zipfile.ZipFile, names: Sequence[str]) -> None:
    """Whether these members may be unpacked: plain files, legible, and no bomb; else ArchiveError.

    Sizes are those that the archive declares; zipfile gives no byte more than that.
    """
    infos = [zipped.getinfo(name) for name in names]
    for info in infos:
        wrong = _kind(info)
        if not wrong and info.file_size > MEMBER:
            wrong = f"{info.file_size:,} bytes, more than the {MEMBER:,} that a member may have"
        if wrong:
            raise _refused(archive, info.filename, wrong)
        _check_ratio(archive, info.filename, info.file_size, info.compress_size)
    total = sum(info.file_size for info in infos)
    if total > TOTAL:
        raise ArchiveError(
            f"{archive}: {total:,} bytes in {len(infos):,} members, more than the {TOTAL:,} that "
            "are unpacked from one archive"
        )
    # members that lie over each other have small packed sizes each; the file has but one
    name = f"{names[0]} to {names[-1]}" if names else ""
    _check_ratio(archive, name, total, archive.stat().st_size)


def _check_names(archive: Path, names: Sequence[str]) -> None:
    if len(names) > MEMBERS:
        raise ArchiveError(f"{archive}: {len(names):,} members, more than the {MEMBERS:,} allowed")
    places: dict[PurePosixPath, str] = {}
    for name in names:
        path, windows = PurePosixPath(name), PureWindowsPath(name)
        wrong = {
            "an absolute path": name.startswith("/") or windows.drive or windows.root,
            # either slash separates there
            "leads out of its folder with ..": ".." in windows.parts,
            "no name": not path.parts,
            f"there twice ({places.get(path)!r} before)": path in places,
        }
        for reason, is_so in wrong.items():
            if is_so:
                raise _refused(archive, name, reason)
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


def _check_ratio(archive: Path, name: str, size: int, packed: int) -> None:
    if size > SMALL and size > RATIO * packed:
        wrong = f"{size:,} bytes packed into {packed:,}, more than {RATIO:g} fold"
        raise _refused(archive, name, wrong)


def _refused(archive: Path, name: str, wrong: str) -> ArchiveError:
    return ArchiveError(f"{archive}, member {name!r}: {wrong}; nothing of it is unpacked")


def write(archive: Path, zipped: zipfile.ZipFile, name: str, path: Path) -> None:
    """Write one checked member to `path`. Raises ArchiveError where it is shorter than declared."""
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
    by_depth: dict[int, dict[tuple[str, ...], dict[str, str]]] = {}
    for name in names:
        parts = PurePosixPath(name).parts
        for place in range(len(parts) - len(ends) + 1):
            if parts[place : place + len(ends)] == ends:
                rest = "/".join(parts[place + len(ends) :])
                by_depth.setdefault(place, {}).setdefault(parts[:place], {})[name] = rest
                break
    if not by_depth:
        raise ArchiveError(f"no {wanted} in it")
    nearest = by_depth[min(by_depth)]
    if len(nearest) > 1:
        there = " and ".join("/".join((*above, wanted)) for above in sorted(nearest))
        raise ArchiveError(f"{wanted} could be {there}; name more of its path")
    paths = next(iter(nearest.values()))
    if wanted.endswith("/") != all(paths.values()):
        kinds = ("a file", "without") if wanted.endswith("/") else ("a folder", "with")
        raise ArchiveError(f"{wanted} is {kinds[0]} there: write it {kinds[1]} / at its end")
    return paths


@dataclass(frozen=True)
class ArchiveContents:
    """What was read of an archive, by its paths in the tree."""

    checked: tuple[str, ...] = ()  #: as in the lock file
    unpinned: tuple[str, ...] = ()  #: all files, where it lacks the address
    missing: tuple[str, ...] = ()  #: pinned, and not in the archive

    def describe(self, tree: Tree | None) -> str:
        """In one line, what was checked and what was not."""
        if tree is None:
            names = some(self.unpinned)
            return f"{len(self.unpinned)} files unpinned, not in the lock file: {names}"
        checked = f"{len(self.checked)} files match the lock file for {tree.name}"
        missing = f"; {len(self.missing)} pinned files missing, as the archive is cut: "
        return checked + (missing + some(self.missing) if self.missing else "")


def some(names: Sequence[str]) -> str:
    """The first of many names."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def fetch(
    get: Callable[[], object],
    url: str,
    archive: Path,
    folder: Path,
    parts: Mapping[str, str],
    tree: Tree | None,
    *,
    cut: bool = False,
) -> ArchiveContents:
    """Take the parts out of the archive that `get` puts there, into `folder`.

    `cut`: pinned files may be missing. Raises what `get` raises, LockError, and ArchiveError.
    """
    get()
    try:
        return unpack(archive, folder, parts, tree, url=url, cut=cut)
    except (DamagedError, LockError) as error:
        aside = archive.replace(archive.with_name(f"{archive.name}.bad"))
        raise type(error)(
            f"{error}. It was set aside as {aside}; the next run asks again"
        ) from None


def unpack(
    archive: Path,
    folder: Path,
    parts: Mapping[str, str],
    tree: Tree | None = None,
    *,
    url: str = "",
    cut: bool = False,
) -> ArchiveContents:
    """Put `parts` of the zip `archive` into `folder`, each whole, all of them or none.

    Raises ArchiveError when one is missing, the archive is damaged, or it is not safe to unpack,
    and LockError when a file is not the one that is pinned.
    """
    # other archives may be unpacked into the folder at the same time, and have other parts
    staged = folder / f".{next(iter(parts)).replace('/', '-')}.part"
    source = f"{archive} ({url})" if url else str(archive)
    try:
        _remove(staged)
        with open_archive(archive) as zipped:
            files = _files(source, zipped.namelist(), tree)
            known = dict.fromkeys([*files, *(tree.blobs if tree else ())])
            try:
                by_target = {target: below(known, wanted) for target, wanted in parts.items()}
            except ArchiveError as error:
                raise ArchiveError(f"{source}: {error}") from None
            contents = _select_files(source, files, by_target, tree, cut)
            there = [*contents.checked, *contents.unpinned]
            check(archive, zipped, [files[path] for path in there])
            for target, paths in by_target.items():
                for path in paths.keys() & files.keys():
                    file = staged / target / paths[path]
                    write(archive, zipped, files[path], file)
                    if tree and (sha1 := blob(file)) != tree.blobs[path]:
                        raise LockError(
                            f"{source}, file {path}: git blob id {sha1} ({file.stat().st_size:,} "
                            f"bytes), expected {tree.blobs[path]}, pinned for {tree.name} in "
                            "resources/lock.tsv. Nothing of the archive is unpacked; ask again, or "
                            "find out who changed it"
                        )
        for target in parts:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            _remove(folder / target)
            (staged / target).replace(folder / target)
    finally:
        _remove(staged)
    return contents


def _files(source: str, names: list[str], tree: Tree | None) -> dict[str, str]:
    """Path -> member; of a commit's tree without the top folder of repository and commit."""
    members = [name for name in names if not name.endswith("/")]
    if tree is None:
        return {name: name for name in members}
    tops = {name.split("/")[0] for name in members}
    if len(tops) != 1 or not all("/" in name for name in members):
        raise LockError(
            f"{source}: {some(sorted(tops))} at its top; expected one folder, as in an archive of "
            f"{tree.name}. Is its address or `tree` in the config right?"
        )
    return {name.partition("/")[2]: name for name in members}


def _select_files(
    source: str,
    files: Mapping[str, str],
    by_target: Mapping[str, Mapping[str, str]],
    tree: Tree | None,
    cut: bool,
) -> ArchiveContents:
    """What will be read. Raises LockError for what is not pinned and for what is missing."""
    paths = sorted({path for part in by_target.values() for path in part})
    if tree is None:
        return ArchiveContents(unpinned=tuple(paths))
    there = [path for path in paths if path in files]
    missing = [path for path in paths if path not in files]
    if strange := [path for path in there if path not in tree.blobs]:
        raise LockError(
            f"{source}: {len(strange)} files that the lock file does not list for {tree.name}: "
            f"{some(strange)}; "
            f"expected the {len(tree.blobs)} that resources/lock.tsv lists. Another commit is "
            "pinned by python -m tools.lock_file; without that nothing tells whether these are the "
            "files that were read before"
        )
    if missing and not cut:
        raise LockError(
            f"{source}: {len(missing)} of {len(paths)} pinned files of {tree.name} are not in it: "
            f"{some(missing)}; expected all of them. Ask again; where the archive is cut on "
            "purpose, as in tests, set sources.cut in the config"
        )
    if gone := [target for target, part in by_target.items() if not part.keys() & files.keys()]:
        raise ArchiveError(
            f"{source}: no file of {some(gone)} in it, all that is pinned is missing"
        )
    return ArchiveContents(checked=tuple(there), missing=tuple(missing))


def _remove(path: Path) -> None:
    """Take away a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
