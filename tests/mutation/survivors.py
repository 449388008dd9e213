"""The list of survivors, and its comparison with a run."""

import csv
from collections import Counter
from pathlib import Path

from tests.mutation.changes import Mutant

COLUMNS = ["file", "function", "line", "change", "reason"]


def read(path: Path) -> dict[tuple[str, ...], str]:
    """Return the reason why a mutant may survive, by its key."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    listed = {tuple(row[c] for c in COLUMNS[:4]): row["reason"] or "" for row in rows}
    bare = [key for key, reason in listed.items() if not reason.strip()]
    if bare or len(listed) < len(rows):
        raise ValueError(f"{path}: rows without reason or twice: {bare or len(rows) - len(listed)}")
    return listed


def report(path: Path, every: list[Mutant], outcome: dict[str, str], bare: bool) -> int:
    """Print counts and differences from the list; return 0 if there are none."""
    listed = read(path)
    tried = {mutant.key for mutant in every}
    alive = {mutant.key for mutant in every if not outcome["\t".join(mutant.key)]}
    new = [mutant.key for mutant in every if mutant.key in alive - listed.keys()]
    files = {key[0] for key in tried}
    # with --only, some mutants of a file are not run
    gone = [key for key in listed if key in tried - alive]
    unknown = [key for key in listed if key[0] in files and key not in tried]
    for title, keys in (
        ("survive and are not in the list", new),
        ("are in the list and are noticed now", gone),
        ("are in the list and were not made", unknown),
    ):
        if keys:
            print(f"\n{len(keys)} mutants {title} ({path.name}):")
            print("\n".join("\t".join(key) for key in keys))
    print(f"\n{len(tried)} mutants, {len(tried - alive)} noticed, {len(alive)} survive")
    for reason, n in Counter(listed[key].split(":")[0] for key in alive & listed.keys()).items():
        print(f"  {n:4} {reason}")
    return int(bool(new or gone)) if bare else int(bool(new or gone or unknown))
