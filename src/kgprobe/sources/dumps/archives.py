"""Unpack zip archives: check them before writing anything, and compare files with the lock file.

    with open_archive(archive) as zipped:          # checks names and number of all members
        check(archive, zipped, [name])             # checks type, size and compression of this one
    unpack(archive, Path("data/bear/ace91fd"), {"BEAR": "BEAR/"}, tree)

`parts` maps names in the folder to paths in the archive; folders end with /. GitHub, figshare and
T-REx provide zip archives; no other kind is unpacked (dumps are read as streams: stream.py).
"""

import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from kgprobe.sources.dumps.lock_file import LockError, Tree, blob

#: How many names an error shows.
SHOWN = 5
#: Upper limits of an archive: members including folders (up to 772 in the full configuration),
#: bytes of one member (T-REx's files have 21 MB, compressed 15 fold) and bytes of all members to
#: unpack (up to 8 * 10^6 in the released sets).
MEMBERS, MEMBER, TOTAL = 100_000, 2 << 30, 4 << 30
#: Maximum compression ratio of members above SMALL bytes. Released archives have at most 5 fold,
#: T-REx 15, Wikidata's dumps about 20; zip bombs 1,032 fold or more.
RATIO, SMALL = 100, 1 << 20
#: Compression methods of the archives above; others can expand one block without limit.
PACKINGS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
#: Flags of members that are encrypted, weakly or strongly, or hold a patch.
ENCRYPTED, PATCH = 0x41, 0x20
#: Errors of zipfile for damaged archives; the last two for damage in the table of contents.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)
#: what to do about a damaged archive that is left where it is
REMOVE = "; remove it and run again"


class ArchiveError(ValueError):
    """An archive is damaged, unsafe or lacks a part; the message names archive, member, cause."""


class DamagedError(ArchiveError):
    """The bytes are not a complete archive; downloading it again may help."""


@contextmanager
def open_archive(archive: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive after checking its table of contents.

    Raises ArchiveError if there are too many members, if names lead out of the folder or overwrite
    each other, or if the archive turns out to be damaged while it is used.
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            if any(info.header_offset < 0 for info in zipped.infolist()):
                raise zipfile.BadZipFile("a member begins before the archive")
            _check_names(archive, zipped.namelist())
            yield zipped
    except DAMAGE as error:
        raise DamagedError(f"{archive}: not a complete zip archive ({error}){REMOVE}") from error


def check(archive: Path, zipped: zipfile.ZipFile, names: Sequence[str]) -> None:
    """Raise ArchiveError unless these members are plain, readable files and not a zip bomb.

    Sizes are those that the archive declares; zipfile never returns more bytes than that.
    """
    infos = [zipped.getinfo(name) for name in names]
    for info in infos:
        mode = stat.S_IFMT(info.external_attr >> 16)  # 0 if the packing system has no file modes
        size, method = info.file_size, info.compress_type
        wrong = {
            "a link": mode == stat.S_IFLNK,
            f"neither file nor folder (mode {mode:o})": mode not in (0, stat.S_IFREG),
            "encrypted": bool(info.flag_bits & ENCRYPTED),
            "a patch of another file": bool(info.flag_bits & PATCH),
            f"packed by method {method}; only stored and deflated ones are read": (
                method not in PACKINGS
            ),
            f"{size:,} bytes, more than the {MEMBER:,} that a member may have": size > MEMBER,
        }
        _refuse(archive, info.filename, wrong | _is_bomb(size, info.compress_size))
    total = sum(info.file_size for info in infos)
    if total > TOTAL:
        raise ArchiveError(
            f"{archive}: {total:,} bytes in {len(infos):,} members, more than the {TOTAL:,} that "
            "are unpacked from one archive"
        )
    # overlapping members have small compressed sizes each, so compare with the size of the file
    name = f"{names[0]} to {names[-1]}" if names else ""
    _refuse(archive, name, _is_bomb(total, archive.stat().st_size))


def _check_names(archive: Path, names: Sequence[str]) -> None:
    if len(names) > MEMBERS:
        raise ArchiveError(f"{archive}: {len(names):,} members, more than the {MEMBERS:,} allowed")
    places: dict[PurePosixPath, str] = {}
    for name in names:
        # Windows accepts both slashes as separators
        path, windows = PurePosixPath(name), PureWindowsPath(name)
        wrong = {
            "an absolute path": bool(windows.drive or windows.root),
            "leads out of its folder with ..": ".." in windows.parts,
            "no name": not path.parts,
            f"there twice ({places.get(path)!r} before)": path in places,
        }
        _refuse(archive, name, wrong)
        places[path] = name
    files = {path for path, name in places.items() if not name.endswith("/")}
    for path, name in places.items():
        above = {f"below {str(one)!r}, which is a file": True for one in files & {*path.parents}}
        _refuse(archive, name, above)


def _is_bomb(size: int, packed: int) -> dict[str, bool]:
    what = f"{size:,} bytes packed into {packed:,}, more than {RATIO:g} fold"
    return {what: size > SMALL and size > RATIO * packed}


def _refuse(archive: Path, name: str, wrong: Mapping[str, bool]) -> None:
    """Raise ArchiveError for the first thing that is wrong with a member."""
    for what, is_so in wrong.items():
        if is_so:
            raise ArchiveError(f"{archive}, member {name!r}: {what}; nothing of it is unpacked")


def below(names: Iterable[str], wanted: str) -> dict[str, str]:
    """Return the paths of `names` that are in (or equal to) the folder or file `wanted`, each with
    its remaining path below it, empty for the file itself.

    `wanted` is the end of a path; a folder ends with /. If it matches at several locations, the one
    nearest to the top is used. Raises ArchiveError if there is no match, if two are equally near
    the top, and if the match is a folder instead of a file or vice versa.
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
    """The outcome of reading an archive, by paths in the tree."""

    checked: tuple[str, ...] = ()  #: files that match the lock file
    unpinned: tuple[str, ...] = ()  #: all files, if the lock file lacks the URL
    missing: tuple[str, ...] = ()  #: pinned, but not in the archive

    def describe(self, tree: Tree | None) -> str:
        """Describe in one line which files were checked and which were not."""
        if tree is None:
            names = some(self.unpinned)
            return f"{len(self.unpinned)} files unpinned, not in the lock file: {names}"
        checked = f"{len(self.checked)} files match the lock file for {tree.name}"
        missing = f"; {len(self.missing)} pinned files missing, as the archive is cut: "
        return checked + (missing + some(self.missing) if self.missing else "")


def some(names: Sequence[str]) -> str:
    """Format the first of many names."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


@contextmanager
def set_aside(archive: Path) -> Iterator[None]:
    """Rename a downloaded archive if, while it is unpacked, it turns out to be damaged or to differ
    from the lock file: then the next run downloads it again."""
    try:
        yield
    except (DamagedError, LockError) as error:
        aside = archive.replace(archive.with_name(f"{archive.name}.bad"))
        cause = str(error).removesuffix(REMOVE)
        raise type(error)(
            f"{cause}. It was set aside as {aside}; the next run asks again"
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
    """Unpack `parts` of the zip `archive` into `folder`, either all of them or none.

    `cut`: pinned files may be missing. Raises ArchiveError if a part is missing, or the archive is
    damaged or unsafe to unpack, and LockError if a file differs from its pinned version.
    """
    # other parts, of other archives, may be unpacked into the folder at the same time
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
                    file.parent.mkdir(parents=True, exist_ok=True)
                    with zipped.open(files[path]) as packed, open(file, "wb") as stream:
                        shutil.copyfileobj(packed, stream)
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
    """Return path -> member; without the top folder (repository and commit) for a pinned tree."""
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
    """Select the files to read. Raises LockError for unpinned and missing files."""
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
    """Remove a file or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
