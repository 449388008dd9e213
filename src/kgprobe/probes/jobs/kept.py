"""Answers stored by content hash: stored ones are reused, and only new ones are computed.

    kept = Kept(Path("data/answers"), "fill", identity_of_model, settings, hash_of_code)
    groups, missing = kept.find({"5f...", "a0..."})
    kept.keep({"a0..."}, folder, record)

A unit is the smallest part that a method can answer alone: a template with its items and their
options, or a whole task. Units that are answered together are stored together, in one folder that
is created atomically: they share batches, whose composition affects the last bits of results. So a
folder that contains all requested units is preferred to several folders.
"""

import errno
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from kgprobe.files import atomic
from kgprobe.job import sha256
from kgprobe.probes.models.journal import keep_steps

#: file that lists the units of a folder, and the record of their answers
RECORD = "record.json"
#: numbers, texts, and tuples, lists and dictionaries of them
Plain = TypeVar("Plain")


@dataclass(frozen=True)
class Group:
    """Units that were answered together: their folder, the units used, and if those are all."""

    folder: Path
    units: Set[str]
    record: Mapping[str, Any]
    is_whole: bool = True


def digest(*values: object) -> str:
    """Return the sha256 of JSON values; other values are hashed by their text."""
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def rows(frame: pl.DataFrame) -> str:
    """Return the sha256 of a frame's columns and rows, in order."""
    return digest(frame.columns, frame.rows())


def content(path: str | Path) -> str:
    """Return the sha256 of a file or folder; for a parquet file only of its rows."""
    if Path(path).suffix == ".parquet":
        return rows(pl.read_parquet(path))
    return sha256(path)


class Kept:
    """The folders of one context: all other inputs that an answer depends on, as JSON values."""

    def __init__(self, place: Path, *context: object) -> None:
        self.folder = place / digest(*context)

    @property
    def work(self) -> Path:
        """Folder of unfinished parts, for the next run to resume."""
        return self.folder / "unfinished"

    @property
    def fresh(self) -> Path:
        """Folder of new answers, private to this process."""
        return self.folder / f".{os.getpid()}.part"

    def find(self, wanted: Iterable[str]) -> tuple[list[Group], set[str]]:
        """Return (groups with requested units, each in one group; units that are not stored)."""
        missing, groups, known = set(wanted), [], []
        # not those of new answers, which are about to be renamed
        for path in self.folder.glob(f"[!.]*/{RECORD}"):
            file = _read_record(path)
            # prefer most requested units, then fewest others; names break ties, so that
            # the choice is deterministic
            units = set(file["units"])
            known.append((-len(missing & units), len(units), path.parent.name, path.parent, file))
        for *_, folder, file in sorted(known, key=lambda one: one[:3]):
            if hits := missing & set(file["units"]):
                groups.append(Group(folder, hits, file["record"], len(hits) == len(file["units"])))
                missing -= hits
        return groups, missing

    def new(self) -> Path:
        """Create the folder `fresh`, empty."""
        shutil.rmtree(self.fresh, ignore_errors=True)
        self.fresh.mkdir(parents=True)
        return self.fresh

    def keep(self, units: Set[str], source: Path, record: Mapping[str, Any]) -> Group:
        """Rename the folder `source`, from `new`, to its final name; delete unfinished parts.

        The same answers of another run, stored meanwhile, stay: that run is reading them.
        """
        stored = {"units": sorted(units), "record": record}
        with atomic(source / RECORD) as temporary:
            temporary.write_text(json.dumps(stored, sort_keys=True), encoding="utf-8")
        folder = self.folder / digest(sorted(units))
        if not (folder / RECORD).is_file():
            shutil.rmtree(folder, ignore_errors=True)
        try:
            os.replace(source, folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        shutil.rmtree(self.work, ignore_errors=True)
        # the record as it is read back
        kept = _read_record(folder / RECORD)
        return Group(folder, units, kept["record"])


def _read_record(path: Path) -> dict[str, Any]:
    """Read a record. Raises ValueError for one that a crash of the machine has damaged."""
    try:
        match json.loads(path.read_text(encoding="utf-8")):
            case {"units": list(), "record": dict()} as record:
                return dict(record)
        raise ValueError("no units with their record")
    except ValueError as error:
        raise ValueError(describe_damage(path, error)) from error


def describe_damage(path: Path, error: Exception) -> str:
    """Describe a damaged file of stored answers, and the remedy."""
    return f"{path}: damaged ({error}); remove {path.parent}, whose answers are then computed again"


@contextmanager
def journal(model: Any, folder: Path | None, name: str, *inputs: object) -> Iterator[None]:
    """Store a model's steps inside the context, for a next run with the same inputs to resume;
    `Kept.keep` deletes them, when the answers are stored.

    Nothing is stored without a folder, nor for a server, whose answers are cached individually.
    """
    if folder is None or not hasattr(model, "journal"):
        yield
        return
    with keep_steps(model, folder / f"{name}.journal", digest(model.record, *inputs)):
        yield


def frame_step(
    model: Any, name: str, compute: Callable[[], tuple[pl.DataFrame, Plain]]
) -> tuple[pl.DataFrame, Plain]:
    """Return a frame and plain values, as one step of the model's journal."""

    def packed() -> tuple[bytes, Plain]:
        frame, more = compute()
        stream = io.BytesIO()
        frame.write_ipc(stream)
        return stream.getvalue(), more

    data, more = model.journal.step(name, packed)
    return pl.read_ipc(data), more


def merge_records(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge records: the common values, and under `asked_apart` the other values of each."""
    first, *others = records
    if not others:
        return dict(first)
    alike = {k: v for k, v in first.items() if all(k in o and o[k] == v for o in others)}
    apart = [{k: v for k, v in one.items() if k not in alike} for one in (first, *others)]
    return {**alike, "asked_apart": apart}
