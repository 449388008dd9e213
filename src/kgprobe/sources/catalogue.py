"""The snapshots of a data folder as a Frictionless data package, for publishing them.

python -m kgprobe.sources.catalogue data
"""

import json
import sys
from pathlib import Path
from typing import Any

from kgprobe import __version__
from kgprobe.job import sha256
from kgprobe.schema import atomic
from kgprobe.sources.snapshots import Snapshot, snapshots

PACKAGE = "datapackage.json"


def package(data: Path) -> dict[str, Any]:
    """The data package of all complete pulls below `data`: one resource a table."""
    return {
        "profile": "data-package",
        "name": "kgprobe-snapshots",
        "description": f"Tables pulled by kgprobe {__version__} over SPARQL",
        "resources": [_resource(data, snapshot) for snapshot in snapshots(data)],
    }


def _resource(data: Path, snapshot: Snapshot) -> dict[str, Any]:
    meta = snapshot.meta
    resource = {
        "name": f"{meta['source']}.{meta['snapshot']}.{meta['query']}".lower(),
        "path": snapshot.result.relative_to(data).as_posix(),
        "format": "parquet",
        "bytes": snapshot.result.stat().st_size,
        "hash": f"sha256:{sha256(snapshot.result)}",
        "rows": meta["rows"],
        "sources": [{"title": f"{meta['endpoint']}, {meta['ended']}", "path": meta["url"]}],
    }
    return resource | ({"licenses": [{"title": meta["licence"]}]} if meta["licence"] else {})


def write_package(data: Path) -> Path:
    """Write datapackage.json into the data folder."""
    with atomic(data / PACKAGE) as temporary:
        temporary.write_text(json.dumps(package(data), indent=1, ensure_ascii=False) + "\n")
    return data / PACKAGE


if __name__ == "__main__":
    print(write_package(Path(sys.argv[1] if len(sys.argv) > 1 else "data")))
