"""Finished shards on disk, so that an interrupted scoring continues where it stopped.

A shard's file carries a key: the hash of everything its numbers depend on. A file with another key
(other model, items, templates, settings) is not used, and is replaced.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Raised when the same inputs give other numbers or columns.
VERSION = 2
METADATA = b"kgprobe.shard"
#: Counters of a record, which are added up; everything else must agree, is joined, or is smallest.
ADDED = ("positions_fed", "head_rows", "rows_asked", "rows_fed", "straddling_tokens")


def key(record: Mapping[str, Any], variant: str, settings: Mapping[str, Any], rows: Any) -> str:
    """Hash of a model's record, the settings, and the (question, option, label) rows of a shard."""
    identity = [VERSION, dict(record), variant, dict(settings)]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode())
    for question, number, label in rows:
        item = question.item
        row: tuple[object, ...] = (item.item, item.subject, question.template, question.text)
        row += (number, label, *([item.prefix] if item.prefix else []))
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()


def load(folder: Path, number: int, wanted: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """(columns, record) of a finished shard; None if there is none with this key."""
    path = _path(folder, number)
    if not path.is_file():
        return None
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid:
        return None  # not a whole file: it is scored again
    stored = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
    if stored.get("key") != wanted:
        return None
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return columns, stored["record"]


def save(
    folder: Path, number: int, identity: str, columns: Mapping[str, Any], record: Mapping[str, Any]
) -> None:
    """Write a shard; the file appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata = json.dumps({"key": identity, "record": dict(record)}, sort_keys=True)
    table = pa.table({name: np.asarray(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({METADATA: metadata.encode()})
    temporary = folder / f".{number:05d}.{os.getpid()}.part"
    pq.write_table(table, temporary)
    os.replace(temporary, _path(folder, number))


def unfinished(folder: Path, number: int) -> Path:
    """The journal of a shard that is under way."""
    return folder / f"shard-{number:05d}.journal"


def _path(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:05d}.parquet"


def merge_records(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One record of several: counters added, notes and back-offs joined, the smallest budget."""
    if not records:
        return {}
    result = dict(records[0])
    for name in ADDED:
        if name in result:
            result[name] = sum(r[name] for r in records)
    result["token_budget"] = min(r["token_budget"] for r in records)
    result["backoffs"] = [b for r in records for b in r["backoffs"]]
    result["notes"] = _unique(n for r in records for n in r["notes"])
    for name in ("prefixes", "last_layer"):
        if name in result:
            result[name] = "+".join(_unique(r[name] for r in records))
    return result


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
