"""results/NAME/manifest.tsv: what every job made, from what, by which versions, at what cost."""

import csv
import io
import json
from pathlib import Path
from typing import Any

COLUMNS = (
    "output sha256 bytes rule wildcards inputs code versions commit "
    "started wall_seconds cpu_seconds start_cpu_seconds peak_mib"
).split()


def records(logs: Path) -> list[dict[str, Any]]:
    """The records that finished jobs left beside their logs, in the order of their paths."""
    return [json.loads(path.read_text()) for path in sorted(logs.rglob("*.json"))]


def rows(found: list[dict[str, Any]], root: Path) -> list[dict[str, object]]:
    """One row per output that still exists, sorted by path; an output made twice has its last job.

    Inputs are given as name=sha256 (twelve digits), so that a row can be followed upstream; code is
    the hash of all that the rule's script can run, or of each method's in a job of several.
    """
    latest: dict[str, dict[str, object]] = {}
    for record in sorted(found, key=lambda r: r["started"]):
        for output, made in record["outputs"].items():
            if (root / output).exists():
                inputs = sorted(
                    f"{name}={digest[:12]}" for name, digest in record["inputs"].items()
                )
                latest[output] = {
                    "output": output,
                    **made,
                    "rule": record["rule"],
                    "wildcards": _joined(record["wildcards"]),
                    "inputs": " ".join(inputs),
                    "code": _short(record.get("code", "")),
                    "versions": _joined(record["versions"]),
                    "commit": record.get("commit", ""),
                    **{c: record[c] for c in COLUMNS[-5:]},
                }
    return [latest[output] for output in sorted(latest)]


def render(table: list[dict[str, object]]) -> str:
    """The table as tab-separated text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def _short(code: str | dict[str, str]) -> str:
    if isinstance(code, str):
        return code[:12]
    return _joined({method: one[:12] for method, one in code.items()})


def _joined(values: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(values.items()))
