"""The lock file (resources/lock.tsv): the git blob id of every file that is used from a commit.

Hashes of archives are never pinned, because hosts repack the same commit; the id of a file in the
commit's tree is part of the commit. A tree is named owner/name@commit.

    lm-pub-quiz/BEAR@ace91fd2c568...   BEAR/P36.jsonl   7d3c5a...

`python -m tools.lock_file` generates the table.
"""

import csv
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

COLUMNS = ["tree", "path", "blob"]


class LockError(ValueError):
    """A file is not the pinned one, or the lock file is invalid; the message says which."""


@dataclass(frozen=True)
class Tree:
    """The pinned files of a commit: path -> blob id."""

    name: str
    blobs: dict[str, str] = field(default_factory=dict)


def read_lock_file(path: str | Path) -> dict[str, Tree]:
    """Read the trees by name. Raises LockError for an invalid line or a missing file."""
    trees: dict[str, Tree] = {}
    if not Path(path).is_file():
        raise LockError(f"{path}: no such file; sources.lock_file names the table of pinned files")
    with open(path, encoding="utf-8", newline="") as stream:
        lines = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        if (head := next(lines, None)) != COLUMNS:
            raise LockError(f"{path}, line 1: {head}, expected the columns {', '.join(COLUMNS)}")
        for number, line in enumerate(lines, 2):
            name, file, blob = line if len(line) == 3 else ("", "", "")
            if "@" not in name or not file or not re.fullmatch("[0-9a-f]{40}", blob):
                raise LockError(
                    f"{path}, line {number}: {line}; expected a tree owner/name@commit, a path, "
                    "and 40 hexadecimal digits"
                )
            blobs = trees.setdefault(name, Tree(name)).blobs
            if file in blobs:
                raise LockError(f"{path}, line {number}: {file} of {name} is there twice")
            blobs[file] = blob
    return trees


def tree_of(url: str) -> str:
    """Return owner/name@commit for the URL of a GitHub archive; "" for other URLs."""
    parts = urlsplit(url)
    match = re.fullmatch(r"/([^/]+/[^/]+)/archive/([0-9a-f]{7,40})\.zip", parts.path)
    return f"{match[1]}@{match[2]}" if match and parts.netloc == "github.com" else ""


def find_tree(trees: Mapping[str, Tree], tree: str, url: str = "") -> Tree | None:
    """Find the tree with that name, or without a name the tree of `url`; commits may be short.

    Returns None for an unknown URL. Raises LockError for an unknown name, and if a short commit is
    ambiguous.
    """
    name = tree or tree_of(url)
    matches = [full for full in trees if "@" in name and full.startswith(name)]
    matches = [name] if name in trees else matches
    if len(matches) > 1:
        raise LockError(f"{name} stands for {' and '.join(matches)}; write more of the commit")
    if tree and not matches:
        raise LockError(f"the lock file has no tree {tree}; there are {', '.join(trees) or 'none'}")
    return trees[matches[0]] if matches else None


def blob(path: Path) -> str:
    """Return the git blob id of a file: sha1 of its length and its bytes."""
    begun = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, lambda: begun).hexdigest()
