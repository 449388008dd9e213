"""Check that every downloaded file in the data folder is unchanged.

Files of released data sets are compared with the lock file, archives and dumps with their format,
the published checksums and the checksum recorded at download, finished snapshots with the hashes in
their meta.json. The check is offline and changes nothing; missing files were not downloaded yet.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kgprobe import experiments
from kgprobe.settings import Settings
from kgprobe.settings.sources import RELEASED, Archive, Sums
from kgprobe.sources.dumps.archives import below
from kgprobe.sources.dumps.download import place, recorded, sums_of, wrong_form, wrong_sums
from kgprobe.sources.dumps.lock_file import Tree, blob, find_tree, read_lock_file, tree_of
from kgprobe.sources.sparql.snapshots import META, RESULT

#: The file that Snakemake writes into each folder made by a rule.
STAMP = ".snakemake_timestamp"


@dataclass
class Finding:
    """The result of checking one source; `problems` names each wrong file and how to fix it."""

    what: str
    checked: int = 0
    unpinned: int = 0
    absent: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Number of files in all and in each of four groups."""
        groups = {
            "checked": self.checked, "wrong": len(self.problems), "unpinned": self.unpinned,
            "absent": self.absent,
        }  # fmt: skip
        return {"files": sum(groups.values()), **groups}


def verify(settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each configured archive, its parts, each dump, and each stored pull."""
    trees = read_lock_file(experiments.located(settings.sources.lock_file))
    data, seen = Path(settings.data), set()
    for name in RELEASED:
        section = getattr(settings.sources, name)
        for archive in section.archives if section.access == "live" else ():
            path = place(data, archive.url)
            if path not in seen:
                called = archive.tree or tree_of(archive.url) or archive.url
                yield _check_file(f"archive {called}", path, path, archive.sums)
            seen.add(path)
            tree = find_tree(trees, archive.tree, archive.url)
            yield _check_parts(f"sources.{name}", Path(section.folder), archive, tree)
    trex = settings.sources.trex
    files = [("trex", trex.access, trex.url, trex.path, trex.sums)]
    for name, dump in settings.sources.dumps.items():
        files.append((f"dumps.{name}", dump.access, dump.url or "", dump.file, dump.sums))
    for name, access, url, file, sums in files:
        if access == "live" and url:
            kept = place(data, url, Path(file).name)
            yield _check_file(f"sources.{name}", Path(file), kept, sums)
    # data/SOURCE/SNAPSHOT/QUERY/meta.json: a pull of instances has a query for each class
    for folder in sorted({meta.parents[1] for meta in data.rglob(META)}):
        yield _check_pull(folder)


def _check_file(what: str, path: Path, kept: Path, sums: Sums) -> Finding:
    """Check a downloaded file against its format, the published checksums and the checksum at
    download; `kept` is the path of the download, perhaps under another name."""
    entry = Finding(what)
    if not path.is_file():
        entry.absent = 1
        return entry
    published = {name: one for name, one in asdict(sums).items() if one}
    first = {"sha256": then} if (then := recorded(kept)[1]) else {}
    now = sums_of(path, {**published, **first})
    wrong = wrong_form(path) or wrong_sums(now, published)
    if not wrong and wrong_sums(now, first):
        wrong = f"{wrong_sums(now, first)} when it came: it was changed since"
    if wrong:
        names = sorted({str(path), str(kept)})
        entry.problems.append(
            f"{path}: {wrong}; remove {' and '.join(names)}, the next run downloads it again"
        )
    elif published or first:
        entry.checked = 1
    else:
        entry.unpinned = 1
    return entry


def _check_parts(what: str, folder: Path, archive: Archive, tree: Tree | None) -> Finding:
    """Check the parts of an archive against the lock file; without a tree they are only counted."""
    entry = Finding(f"{what} {', '.join(archive.parts)}")
    for target, wanted in archive.parts.items():
        top = folder / target
        below_top = {p for p in top.rglob("*") if p.is_file() and p.name != STAMP}
        there = {top} if top.is_file() else below_top
        if tree is None:
            entry.unpinned += len(there)
            continue
        for name, rest in below(tree.blobs, wanted).items():
            path = top / rest if rest else top
            if path not in there:
                entry.absent += 1
            elif (now := blob(path)) != tree.blobs[name]:
                entry.problems.append(
                    f"{path}: git blob id {now}, expected {tree.blobs[name]}, pinned for {name} of "
                    f"{tree.name}; remove {top}, the next run takes it out of the archive again"
                )
            else:
                entry.checked += 1
            there.discard(path)
        entry.problems += [
            f"{path}: no file of {tree.name}; expected only those that resources/lock.tsv lists "
            f"below {wanted}. Remove it"
            for path in sorted(there)
        ]
    return entry


def _check_pull(folder: Path) -> Finding:
    """Check the finished queries of a pull against the recorded hashes of pages and table."""
    entry = Finding(f"pull {folder}")
    for meta in sorted(folder.glob(f"*/{META}")):
        advice = f"remove {meta.parent}, the next run pulls it again"
        try:
            data = json.loads(meta.read_text(encoding="utf-8"))
            hashes = {f"page-{page['number']:05}.json.gz": page["sha256"] for page in data["pages"]}
            if "result_sha256" in data:
                hashes[RESULT] = data["result_sha256"]
        except (ValueError, KeyError, TypeError) as error:
            entry.problems.append(f"{meta}: {type(error).__name__}: {error}; {advice}")
            continue
        for name, expected in hashes.items():
            if (now := _hash(meta.parent / name)) == expected:
                entry.checked += 1
            else:
                entry.problems.append(f"{meta.parent / name}: {now}, expected {expected}; {advice}")
    return entry


def _hash(path: Path) -> str:
    """Return the hash of a table or of an unpacked page, or the error that prevented it."""
    try:
        data = path.read_bytes()
        return hashlib.sha256(data if path.name == RESULT else gzip.decompress(data)).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        return f"{type(error).__name__}: {error}"


def totals(rows: Sequence[Finding]) -> list[dict[str, object]]:
    """Return the counts of each source, followed by their sums."""
    counts = [row.counts for row in rows]
    sums = {name: sum(one[name] for one in counts) for name in counts[0]}
    return [{"what": row.what, **row.counts} for row in rows] + [{"what": "all", **sums}]
