"""`make bench`: run every measurement in sequence, and print one table of the results.

    python -m perf.run [name ...]

Each module writes its rows to results/perf/<name>.json; a row has name, ours, peer, unit, ratio
and target: the least ratio (a number), or an upper bound of ours ("<= 3"). Measurements that fail
and rows that miss their target are listed at the end, and the command fails.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path("results/perf")


def names() -> list[str]:
    """Return the measurements: every module of this folder but this one."""
    return sorted(p.stem for p in Path(__file__).parent.glob("[a-z]*.py") if p.stem != "run")


def table(rows: list[dict[str, object]]) -> str:
    """Format the rows as aligned text."""
    header = ["name", "ours", "peer", "ratio", "target", "unit"]
    lines = [header, *([str(row.get(c, "")) for c in header] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def missed(row: Mapping[str, Any]) -> bool:
    """Return whether a row is below its target, or above its bound. Raises ValueError for a target
    that is neither."""
    target = row["target"]
    if target == "":
        return False
    if isinstance(target, str):
        sign, bound = target.split(" ")
        if sign != "<=":
            raise ValueError(f"{row['name']}: target {target!r}; valid: a number, '<= number', ''")
        return float(row["ours"]) > float(bound)
    return float(row["ratio"]) < target


def main(wanted: list[str]) -> int:
    """Run the measurements and print their rows; return 1 if one failed or missed its target."""
    failed, rows = [], []
    for name in wanted or names():
        print(f"--- {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"perf.{name}"]).returncode:
            failed.append(f"{name}: failed")
        elif (path := RESULTS / f"{name}.json").is_file():
            rows += json.loads(path.read_text())
    print(table(rows))
    failed += [f"{r['name']}: target {r['target']} missed" for r in rows if missed(r)]
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
