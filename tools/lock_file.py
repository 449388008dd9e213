"""Write resources/lock.tsv: the git blob ids of all files that a configuration reads at fixed
commits.

    python -m tools.lock_file [CONFIG.yaml ...] PLACE ...

A PLACE is a git directory (of a clone or a mirror) or a zip archive as git archive writes it. An
archive of the configuration whose commit is in one of them gets its lines from there: ids from a
git directory are the commit's own, those of an archive are computed from its bytes, and both must
agree if both are given. Lines of other trees are kept. Configurations are merged into
config/config.yaml, as Snakemake does it.
"""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kgprobe import config
from kgprobe.settings import Settings
from kgprobe.settings.sources import RELEASED, Archive
from kgprobe.sources.dumps.archives import ArchiveError, below, open_archive
from kgprobe.sources.dumps.lock_file import COLUMNS, LockError, Tree, read_lock_file, tree_of


def trees(archives: Iterable[Archive], places: Sequence[Path]) -> Iterator[Tree]:
    """Return the files of all archives whose commits are in one of the places, one tree per commit.

    Raises LockError if two places disagree about a file, ArchiveError if a part is missing.
    """
    made: dict[str, dict[str, str]] = {}
    for archive in archives:
        name = archive.tree or tree_of(archive.url)
        if not name:
            continue
        found = [one for place in places if (one := read_listing(place, name))]
        if not found:
            continue
        full, files = _agreed(found)
        for wanted in archive.parts.values():
            try:
                paths = below(files, wanted)
            except ArchiveError as error:
                raise ArchiveError(f"{full}: {error}") from None
            made.setdefault(full, {}).update({path: files[path] for path in paths})
    return (Tree(name, blobs) for name, blobs in sorted(made.items()))


def read_listing(place: Path, name: str) -> tuple[str, dict[str, str]] | None:
    """Return (full name, path -> blob id) of a tree owner/name@commit in a place, if it is
    there."""
    repository, _, commit = name.partition("@")
    found = _of_archive(place, commit) if place.is_file() else _of_git(place, commit)
    if found is None:
        return None
    full, files, origin = found
    # commits are unique, but a fork has those of its origin
    return (f"{repository}@{full}", files) if origin in ("", repository.split("/")[1]) else None


def _of_git(place: Path, commit: str) -> tuple[str, dict[str, str], str] | None:
    def git(*words: str) -> str:
        said = subprocess.run(["git", f"--git-dir={place}", *words], capture_output=True, text=True)
        return said.stdout if said.returncode == 0 else ""

    full = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").strip()
    if not full:
        return None
    lines = [line for line in git("ls-tree", "-r", "-z", full).split("\0") if line]
    rows = [(line.partition("\t")[2], *line.partition("\t")[0].split()) for line in lines]
    # links and submodules (modes 120000 and 160000) are no files to read
    files = {path: blob for path, mode, _, blob in rows if mode.startswith("100")}
    return full, files, ""


def _of_archive(place: Path, commit: str) -> tuple[str, dict[str, str], str] | None:
    with open_archive(place) as zipped:
        names = [name for name in zipped.namelist() if not name.endswith("/")]
        top = names[0].split("/")[0] if names else ""
        repository, _, full = top.rpartition("-")
        if not full.startswith(commit):
            return None
        return full, {name.partition("/")[2]: _id(zipped, name) for name in names}, repository


def _id(zipped: zipfile.ZipFile, name: str) -> str:
    data = zipped.read(name)
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _agreed(found: Sequence[tuple[str, dict[str, str]]]) -> tuple[str, dict[str, str]]:
    """Merge the listings of a tree from all places; a truncated one has fewer files."""
    name, files = found[0]
    for other, more in found[1:]:
        differing = sorted(path for path in files.keys() & more.keys() if files[path] != more[path])
        if other != name or differing:
            raise LockError(
                f"{name} and {other} differ in {', '.join(differing[:5]) or 'their commits'}; "
                "expected the same ids (git archive changes files with export-subst or line ends)"
            )
        files = files | more
    return name, files


def write_lock_file(path: Path, trees: Iterable[Tree]) -> None:
    """Write a table, sorted by tree and path."""
    rows = sorted([tree.name, *pin] for tree in trees for pin in tree.blobs.items())
    path.write_text("".join("\t".join(row) + "\n" for row in [COLUMNS, *rows]), encoding="utf-8")


def archives_of(settings: Settings) -> list[Archive]:
    """Return all archives that a configuration names."""
    return [one for name in RELEASED for one in getattr(settings.sources, name).archives]


def main(words: Sequence[str]) -> int:
    """Write the table; return the exit code."""
    places = [Path(word) for word in words if not word.endswith(".yaml")]
    missing = [str(place) for place in places if not place.exists()]
    if missing or not places:
        print(f"not there: {', '.join(missing) or 'PLACE'}\n\n{__doc__}", file=sys.stderr)
        return 2
    settings = config.load(["config/config.yaml", *(w for w in words if w.endswith(".yaml"))])
    path = Path(settings.sources.lock_file)
    kept = read_lock_file(path) if path.is_file() else {}
    made = {tree.name: tree for tree in trees(archives_of(settings), places)}
    write_lock_file(path, (kept | made).values())
    for name, tree in sorted((kept | made).items()):
        print(f"{name}: {len(tree.blobs)} pinned" + ("" if name in made else " (kept)"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
