"""Answers that are kept by content: those that are there are used, and only new ones are asked.

    kept = Kept(Path("data/answers"), "fill", identity_of_model, settings, hash_of_code)
    groups, missing = kept.find({"5f...", "a0..."})
    kept.keep({"a0..."}, folder, record)

A unit is what a method can be asked alone: a template with its items and their options, or a whole
task. Units that are asked together are kept together, in one folder that appears whole: they share
batches, and the composition of batches is part of the last bits of their numbers. So a folder that
holds all that is asked comes before several that do so together.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import sha256
from kgprobe.probes.models.journal import keep_steps

#: file that names the units of a folder, and how they were answered
RECORD = "record.json"


@dataclass(frozen=True)
class Group:
    """Units that were answered together: their folder, and those of them that are used (all?)."""

    folder: Path
    units: Set[str]
    record: Mapping[str, Any]
    is_whole: bool = True


def digest(*values: object) -> str:
    """sha256 of JSON values; what JSON does not know counts by its text."""
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def rows(frame: pl.DataFrame) -> str:
    """sha256 of a frame's columns and rows, in their order."""
    return digest(frame.columns, frame.rows())


def content(path: str | Path) -> str:
    """sha256 of a file or folder; of a parquet file its rows, whatever made them."""
    if Path(path).suffix == ".parquet":
        return rows(pl.read_parquet(path))
    return sha256(path)


class Kept:
    """The folders of one context: whatever else an answer depends on, as JSON values."""

    def __init__(self, place: Path, *context: object) -> None:
        self.folder = place / digest(*context)

    @property
    def work(self) -> Path:
        """Where unfinished parts wait for the run that follows a stop."""
        return self.folder / "unfinished"

    def find(self, wanted: Iterable[str]) -> tuple[list[Group], set[str]]:
        """(groups that hold units that are wanted, each unit in one; those that nobody holds)."""
        missing, groups = set(wanted), []
        known = [
            (path.parent, json.loads(path.read_text(encoding="utf-8")))
            for path in self.folder.glob(f"*/{RECORD}")
        ]
        # the most of what is wanted first, then the least besides; names settle the rest, so that
        # the choice is always the same
        known.sort(
            key=lambda one: (
                -len(missing & set(one[1]["units"])),
                len(one[1]["units"]),
                one[0].name,
            )
        )
        for folder, file in known:
            if hits := missing & set(file["units"]):
                groups.append(Group(folder, hits, file["record"], len(hits) == len(file["units"])))
                missing -= hits
        return groups, missing

    def new(self) -> Path:
        """An empty folder for answers that are being made, this process's own."""
        path = self.folder / f".{os.getpid()}.part"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def keep(self, units: Set[str], source: Path, record: Mapping[str, Any]) -> Group:
        """Give the folder `source`, one of `new`, its final name; unfinished parts go."""
        stored = {"units": sorted(units), "record": record}
        (source / RECORD).write_text(json.dumps(stored, sort_keys=True), encoding="utf-8")
        folder = self.folder / digest(sorted(units))
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(source, folder)
        shutil.rmtree(self.work, ignore_errors=True)
        # the record is returned as it will be read
        return Group(folder, units, json.loads(json.dumps(record)))


@contextmanager
def journal(model: Any, folder: Path | None, name: str, *inputs: object) -> Iterator[None]:
    """Keep what a model computes in the body, for the run that follows a stop and asks the same.

    Nothing is kept without a folder, nor of a server, whose answers are kept one by one.
    """
    if folder is None or not hasattr(model, "journal"):
        yield
        return
    path = folder / f"{name}.journal"
    with keep_steps(model, path, digest(model.record, *inputs)):
        yield
    path.unlink(missing_ok=True)


def merge_records(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One record of several: what all say alike, and under `asked_apart` what each says besides."""
    first, *others = records
    if not others:
        return dict(first)
    alike = {k: v for k, v in first.items() if all(k in o and o[k] == v for o in others)}
    apart = [{k: v for k, v in one.items() if k not in alike} for one in (first, *others)]
    return {**alike, "asked_apart": apart}
