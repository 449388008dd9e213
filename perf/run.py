"""`make bench`: every measurement, one after the other, and one table of what came out.

    python -m perf.run [name ...]

Each module writes its rows to results/perf/<name>.json; a row has name, ours, peer, unit, ratio
and target. A measurement that fails is named at the end and fails the command.
"""

import json
import subprocess
import sys
from pathlib import Path

RESULTS = Path("results/perf")


def names() -> list[str]:
    """The measurements: every module of this folder but this one."""
    return sorted(p.stem for p in Path(__file__).parent.glob("[a-z]*.py") if p.stem != "run")


def table(rows: list[dict[str, object]]) -> str:
    """The rows as aligned text."""
    header = ["name", "ours", "peer", "ratio", "target", "unit"]
    lines = [header, *([str(row.get(c, "")) for c in header] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def main(wanted: list[str]) -> int:
    """Run the measurements and print their rows; the number that failed is the exit code."""
    failed = []
    for name in wanted or names():
        print(f"--- {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"perf.{name}"]).returncode:
            failed.append(name)
    rows = [row for path in sorted(RESULTS.glob("*.json")) for row in json.loads(path.read_text())]
    print(table(rows))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
