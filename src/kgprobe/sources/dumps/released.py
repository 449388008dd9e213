"""Released data sets: parts of archives, each file checked against its pin before it appears.

    fetch(url, Path("data/archives/..."), Path("data/bear/ace91fd"), {"BEAR": "BEAR/"}, tree, ...)

`parts` is name in the folder -> path in the archive, of a folder with / at its end. An archive is
kept, as several data sets may be parts of it; one that is not what is pinned is set aside as
`NAME.bad` and asked for again by the next run.
"""

import csv
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from kgprobe.files import atomic
from kgprobe.sources.dumps.archives import (
    DEFAULT,
    ArchiveError,
    DamagedError,
    Limits,
    below,
    check,
    opened,
    write,
)
from kgprobe.sources.dumps.pins import ADVICE, PinError, Tree, blob

#: Names that an error or a note shows of many.
SHOWN = 5


@dataclass(frozen=True)
class ArchiveContents:
    """What was read of an archive, by its paths in the tree."""

    checked: tuple[str, ...]  #: equal to their pins
    unpinned: tuple[str, ...]  #: without a pin
    missing: tuple[str, ...]  #: pinned, and not in the archive

    def describe(self, tree: Tree | None) -> str:
        """In one line, what was checked and what was not."""
        said = [f"{len(self.checked)} files equal their pins in {tree.name}"] if tree else []
        if self.unpinned:
            why = "" if tree else ", as this address has no pins"
            said.append(f"{len(self.unpinned)} files unpinned{why}: {some(self.unpinned)}")
        if self.missing:
            said.append(
                f"{len(self.missing)} pinned files missing, as the archive is cut: "
                f"{some(self.missing)}"
            )
        return "; ".join(said)


def some(names: tuple[str, ...] | list[str]) -> str:
    """The first of many names."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def place(data: Path, url: str, name: str = "") -> Path:
    """Where what an address gives is kept below the data folder, once for all who read it.

    An archive is called after its address, another file `name`.
    """
    parts = urlsplit(url)
    # no part of an address leads upwards in ours
    path = [part for part in PurePosixPath(parts.path.lstrip("/")).parts if part != ".."]
    named = [quote(part, safe="") for part in path] or ["archive"]
    query = f"-{quote(parts.query, safe='')}" if parts.query else ""
    *folders, last = [quote(parts.netloc, safe=""), *named]
    if name:
        return data.joinpath("archives", *folders, f"{last}{query}", name)
    return data.joinpath("archives", *folders, f"{last.removesuffix('.zip')}{query}.zip")


def link(kept: Path, path: Path) -> None:
    """Let a kept file appear at `path`, too.

    Snakemake takes away the output of a job that is to run again: of a transfer of hours that is a
    name only.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    try:
        path.hardlink_to(kept)
    except OSError:  # another disk, or one that has no hard links
        path.symlink_to(kept.absolute())


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

    `cut`: pinned files may be missing; `cut-COMMIT.tsv` beside the parts lists them then. Raises
    what `get` raises, PinError, and ArchiveError.
    """
    get()
    try:
        return unpack(archive, folder, parts, tree, url=url, cut=cut)
    except (DamagedError, PinError) as error:
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
    limits: Limits = DEFAULT,
) -> ArchiveContents:
    """Put `parts` of the zip `archive` into `folder`, each whole, all of them or none.

    Raises ArchiveError when one is missing, the archive is damaged, or it is not safe to unpack,
    and PinError when a file is not the one that is pinned.
    """
    staged: dict[Path, Path] = {}
    source = f"{archive} ({url})" if url else str(archive)
    try:
        with opened(archive, limits) as zipped:
            files = _files(source, zipped.namelist(), tree)
            found = {
                target: _below(source, files, wanted, tree) for target, wanted in parts.items()
            }
            taken = _select_files(source, files, found, tree, cut)
            there = {
                path: files[path] for paths in found.values() for path in paths if path in files
            }
            check(archive, zipped, list(there.values()), limits)
            for target, paths in found.items():
                final = folder / target
                temporary = staged[final] = final.with_name(f".{final.name}.part")
                _remove(temporary)
                for path in paths.keys() & there.keys():
                    file = temporary / paths[path] if paths[path] else temporary
                    write(archive, zipped, there[path], file)
                    _compare(source, path, file, tree)
        for final, temporary in staged.items():
            _remove(final)
            temporary.replace(final)
    finally:
        for temporary in staged.values():
            _remove(temporary)
    _list_missing(folder, taken, tree)
    return taken


def _files(source: str, names: list[str], tree: Tree | None) -> dict[str, str]:
    """Path -> member; of a commit's tree without the top folder of repository and commit."""
    members = [name for name in names if not name.endswith("/")]
    if tree is None:
        return {name: name for name in members}
    tops = {name.split("/")[0] for name in members}
    if len(tops) != 1 or not all("/" in name for name in members):
        raise PinError(
            f"{source}: {some(sorted(tops))} at its top; expected one folder, as in an archive of "
            f"{tree.name}. Is its address or `tree` in the config right?"
        )
    return {name.partition("/")[2]: name for name in members}


def _below(source: str, files: Mapping[str, str], wanted: str, tree: Tree | None) -> dict[str, str]:
    """The files of a part, in the archive or pinned: path -> its rest below the part."""
    known = dict.fromkeys([*files, *(tree.paths if tree else [])])
    try:
        return below(known, wanted)
    except ArchiveError as error:
        raise ArchiveError(f"{source}: {error}") from None


def _select_files(
    source: str,
    files: Mapping[str, str],
    found: Mapping[str, Mapping[str, str]],
    tree: Tree | None,
    cut: bool,
) -> ArchiveContents:
    """What will be read. Raises PinError for what is not pinned and for what is missing."""
    paths = sorted({path for part in found.values() for path in part})
    blobs = tree.blobs if tree else {}
    there = [path for path in paths if path in files]
    missing = [path for path in paths if path not in files]
    if tree and (strange := sorted(set(there) - set(tree.paths))):
        raise PinError(
            f"{source}: {len(strange)} files that {tree.name} has no pins of: {some(strange)}; "
            f"expected the {len(tree.paths)} that resources/pins.tsv lists. {ADVICE}"
        )
    if tree and missing and not cut:
        raise PinError(
            f"{source}: {len(missing)} of {len(paths)} pinned files of {tree.name} are not in it: "
            f"{some(missing)}; expected all of them. Ask again; where the archive is cut on "
            "purpose, as in tests, set sources.cut in the config"
        )
    if gone := [target for target, part in found.items() if not part.keys() & files.keys()]:
        raise ArchiveError(
            f"{source}: no file of {some(gone)} in it, all that is pinned is missing"
        )
    return ArchiveContents(
        tuple(path for path in there if path in blobs),
        tuple(path for path in there if path not in blobs),
        tuple(missing),
    )


def _compare(source: str, path: str, file: Path, tree: Tree | None) -> None:
    """Raises PinError where a written file is not the pinned one."""
    wanted = tree.blobs.get(path) if tree else None
    if tree and wanted and (found := blob(file)) != wanted:
        raise PinError(
            f"{source}, file {path}: git blob id {found} ({file.stat().st_size:,} bytes), "
            f"expected {wanted}, pinned for {tree.name} in resources/pins.tsv. Nothing of the "
            "archive is unpacked; ask again, or find out who changed it"
        )


def _list_missing(folder: Path, taken: ArchiveContents, tree: Tree | None) -> None:
    """Write, or take away, the list of files that a cut archive lacks."""
    if tree is None:
        return
    path = folder / f"cut-{tree.name.partition('@')[2][:7]}.tsv"
    if not taken.missing:
        path.unlink(missing_ok=True)
        return
    with atomic(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        lines = csv.writer(stream, delimiter="\t", lineterminator="\n")
        lines.writerow(("tree", "path", "blob"))
        lines.writerows((tree.name, name, tree.blobs.get(name, "")) for name in taken.missing)


def _remove(path: Path) -> None:
    """Take away a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
