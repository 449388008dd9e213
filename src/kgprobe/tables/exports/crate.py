"""A run as an RO-Crate 1.1: its tables, report and manifest with what they were made by.

https://w3id.org/ro/crate/1.1. Files are those of the run; `ro-crate-metadata.json` tells size and
hash of each, the workflow's version and the settings that it ran with.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import kgprobe
from kgprobe.job import sha256
from kgprobe.tables.exports.folders import ExportError, whole_folder
from kgprobe.tables.exports.origins import SOURCES

NAME = "ro-crate"
METADATA = "ro-crate-metadata.json"
#: what of a run is handed on; `kgprobe probe` keeps what was scored beside it and has no manifest
SHARDS, MANIFEST = "shards", "manifest.tsv"
PARTS = ("tables", "report", MANIFEST)
OURS = rf"{METADATA}|manifest\.tsv|(tables|report)/.+"
FORMATS = {
    ".parquet": "application/vnd.apache.parquet", ".tsv": "text/tab-separated-values",
    ".html": "text/html", ".svg": "image/svg+xml", ".json": "application/json",
    ".txt": "text/plain", ".csv": "text/csv", ".md": "text/markdown", ".js": "text/javascript",
}  # fmt: skip
SOFTWARE = "https://github.com/kgprobe/kgprobe"


def write(run: Path, folder: Path) -> None:
    """Write the crate of the run at `run` to `folder`, whole or not at all.

    Raises ExportError for a run that is not finished, or a folder that holds something else.
    """
    parts = [part for part in PARTS if part != MANIFEST or not (run / SHARDS).is_dir()]
    lacking = [part for part in parts if not (run / part).exists()]
    if lacking:
        raise ExportError(f"{run}: no {', '.join(lacking)}; right would be a run that is finished")
    with whole_folder(folder, OURS) as temporary:
        for part in parts:
            source = run / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, temporary / part)
        text = json.dumps(_described(run.name, temporary), indent=1, ensure_ascii=False)
        (temporary / METADATA).write_text(text + "\n", encoding="utf-8")


def _described(name: str, folder: Path) -> dict[str, Any]:
    files = [_file(path, folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    held = [{"@id": file["@id"]} for file in files]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"kgprobe run {name}",
        "description": "What language models know of a knowledge graph: every measured number with "
        "its n and interval, the printed tables, the report, and what a manifest tells of files.",
        # no clock: the same run gives the same bytes
        "datePublished": "1970-01-01",
        "license": {"@id": "https://spdx.org/licenses/CC0-1.0"},
        "hasPart": held,
        "mentions": [{"@id": "#run"}],
    }
    metadata = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    action = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"run {name}",
        "instrument": {"@id": SOFTWARE},
        "result": held,
    }
    software = {
        "@id": SOFTWARE,
        "@type": "SoftwareApplication",
        "name": "kgprobe",
        "softwareVersion": kgprobe.__version__,
        "url": SOFTWARE,
    }
    licence = {
        "@id": "https://spdx.org/licenses/CC0-1.0",
        "@type": "CreativeWork",
        "name": "CC0 1.0: numbers and tables; questions keep the licences of their sources, "
        + "; ".join(f"{s.title} {s.licence}" for s in SOURCES.values()),
    }
    return {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [metadata, root, action, software, licence, *files],
    }


def _file(path: Path, folder: Path) -> dict[str, Any]:
    inside = path.relative_to(folder).as_posix()
    kind = FORMATS.get(path.suffix)
    return {
        "@id": inside,
        "@type": "File",
        "name": path.name,
        "contentSize": str(path.stat().st_size),
        "sha256": sha256(path),
        **({"encodingFormat": kind} if kind else {}),
    }
