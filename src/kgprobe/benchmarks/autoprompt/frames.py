"""The files of every task for prompt search: examples, vocabulary, templates, funnel.

A task is a folder: examples.parquet (EXAMPLES), vocabulary.json (the words or classes that can be
predicted), task.json (templates per kind of model, names, notes), funnel.parquet (FUNNEL).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.sampling import take
from kgprobe.schema import EXAMPLES, FUNNEL
from kgprobe.settings.benchmarks import Rows

SPLITS = ("train", "dev", "test")
#: Flags that exclude a test fact from the no-overlap subset.
FLAGS = ("pair", "inverse", "within", "same")


class TaskError(ValueError):
    """A task cannot be built; the message names the source, the location and the remedy."""


@dataclass(frozen=True)
class Task:
    """The content of a task's files: EXAMPLES, vocabulary, task.json, FUNNEL."""

    examples: pl.DataFrame
    vocabulary: list[str]
    task: dict[str, Any]
    funnel: pl.DataFrame


def as_json(fields: Mapping[str, str]) -> str:
    """Return the text of an example's fields."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=False)


def frame(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """Return EXAMPLES of rows in its order of columns, in which `fields` is a mapping and lists may
    repeat values."""
    cells = [
        (*row[:4], as_json(row[4]), row[5], *(list(dict.fromkeys(texts)) for texts in row[6:]))
        for row in rows
    ]
    return pl.DataFrame(cells, schema=dict(EXAMPLES.columns), orient="row")


def require(counts: Mapping[str, Mapping[str, int]], least: Rows, source: str, remedy: str) -> None:
    """Raise TaskError unless every group has at least `least` examples in every split.

    `counts`: group -> split -> number. The message lists group, needed and found number of each.
    """
    short = [
        f"{group or 'all'}: {split} needs {needed}, found {by_split.get(split, 0)}"
        for group, by_split in counts.items()
        for split, needed in asdict(least).items()
        if by_split.get(split, 0) < needed
    ]
    if not counts:
        short = ["no relation at all"]
    if short:
        raise TaskError(f"{source}: too few examples; {remedy}\n  " + "\n  ".join(short))


def sizes(examples: pl.DataFrame, groups: Iterable[str] = ()) -> dict[str, dict[str, int]]:
    """Return group -> split -> number of examples, also for `groups` without examples."""
    counts: dict[str, dict[str, int]] = {group: {} for group in groups}
    for group, split, n in examples.group_by("group", "split", maintain_order=True).len().rows():
        counts.setdefault(group, {})[split] = n
    return counts


def existing(path: Path, what: str, source: str) -> Path:
    """Return `path`. If it is missing, raise TaskError that names the source in the config."""
    if not path.exists():
        raise TaskError(
            f"{path}: no such file or folder ({what}); set sources.{source}.folder in the config "
            f"(KGPROBE_DATA for local data), or sources.{source}.access: live to download it"
        )
    return path


def write(task: Task, folder: Path, provenance: Mapping[str, object]) -> None:
    """Write the four files of a task, each atomically."""
    schema.write(task.examples, EXAMPLES, folder / "examples.parquet", provenance)
    schema.write(task.funnel, FUNNEL, folder / "funnel.parquet", provenance)
    for name, value in (("vocabulary", task.vocabulary), ("task", task.task)):
        with schema.atomic(folder / f"{name}.json") as temporary:
            text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
            temporary.write_text(text + "\n", encoding="utf-8")


def part(examples: pl.DataFrame, settings: Mapping[str, Any], seed: int = 0) -> pl.DataFrame:
    """Return the EXAMPLES for a search and its baselines: `groups` (null: all), and at most `most`
    facts per split and group, by hash of the facts."""
    groups = settings.get("groups")
    if groups is not None:
        examples = examples.filter(pl.col("group").is_in(list(groups)))
    for split, most in (settings.get("most") or {}).items():
        if most is not None:
            rows, others = examples.filter(split=split), examples.filter(pl.col("split") != split)
            facts = rows.select("group", "fact").unique()
            facts = take(facts, int(most), seed, ["fact"], ["group"], split)
            kept = rows.join(facts, on=["group", "fact"], how="semi")
            examples = pl.concat([others, kept]).sort("group", "split", "example")
    return examples
