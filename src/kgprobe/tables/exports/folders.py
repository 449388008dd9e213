"""Export folders, written atomically and never over unrelated files."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from kgprobe.benchmarks.bear.frames import BearFrames

#: text that all versions of YAML read as a string without quotes
PLAIN = re.compile(r"(?!(?:null|true|false|yes|no|on|off|y|n)$)[a-z_][\w./-]*", re.ASCII | re.I)
#: hint at formats in which each question has its own options and correct ones
OTHERS = "use --as lm-eval or huggingface"


class ExportError(ValueError):
    """A set cannot be exported, or the folder contains something else; the message says why."""


def scalar(text: str) -> str:
    """Format a text as a YAML scalar, quoted if necessary.

    >>> scalar("world_lite"), scalar("2020"), scalar("a: b")
    ('world_lite', '"2020"', '"a: b"')
    """
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


@contextmanager
def whole_folder(folder: Path, ours: str, sign: str) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` once it is complete, or not at all.

    An older export at `folder` is replaced. Raises ExportError if a file in it does not match the
    pattern `ours` (of its relative path), or if the file `sign` is missing, because then it is not
    an export.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        what = "link" if folder.is_symlink() else "file"
        raise ExportError(f"{folder}: is a {what}; an export needs a folder of its own")
    if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise ExportError(
            f"{folder}: holds the working folder, and an export replaces its whole folder; "
            "expected a folder of its own"
        )
    inside = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    if strangers := sorted(p for p in inside if not re.fullmatch(ours, p)):
        raise ExportError(f"{folder}: contains {strangers[0]!r}, which is not part of an export")
    if inside and sign not in inside:
        raise ExportError(
            f"{folder}: contains {min(inside)!r} but no {sign}, so it is not an older export, "
            "which would be replaced; name a new folder"
        )
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def relations_in_order(sets: BearFrames) -> list[str]:
    """Return the relations of a set by their number (P6 before P19)."""
    names = sets.items["relation"].unique().to_list()
    return sorted(names, key=lambda name: (int(re.sub(r"\D", "", name) or 0), name))


def templates_by_index(sets: BearFrames, relation: str) -> dict[int, str]:
    """Return the templates of one relation by index. Raises ExportError if it has none."""
    templates = sets.prompts.filter(pl.col("relation") == relation).sort("index")
    if not templates.height:
        raise ExportError(f"{relation}: no written template, which sentences are made of; "
                          "use --questions choices")  # fmt: skip
    return dict(templates.select("index", "text").rows())


def templates_of(sets: BearFrames, relation: str) -> list[str]:
    """Return the templates of one relation; a template's position is its index.

    Raises ExportError if indices are missing: formats that only know positions would renumber the
    remaining templates.
    """
    texts = templates_by_index(sets, relation)
    if list(texts) != list(range(len(texts))):
        raise ExportError(
            f"{relation}: templates {list(texts)}; an export needs 0, 1, ... without gaps; {OTHERS}"
        )
    return list(texts.values())


def options_of(sets: BearFrames) -> dict[str, pl.DataFrame]:
    """Return the CANDIDATES of every set in the order of their indices. Raises ExportError for
    missing indices, since other formats would renumber the options."""
    rows = sets.candidates.sort("set", "index").group_by("set", maintain_order=True)
    frames = {}
    for (name,), options in rows:
        if options["index"].to_list() != list(range(options.height)):
            raise ExportError(f"{name}: candidate indices must be 0, 1, ... without gaps")
        frames[str(name)] = options
    return frames


def items_of(sets: BearFrames, relation: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return ITEMS of one relation in row order with the column `answer`, and its options by index,
    for formats with one option set per relation and one correct option.

    Raises ExportError for an item with several correct options, or options of its own.
    """
    items = sets.items.filter(pl.col("relation") == relation).sort("row")
    several = items.filter(pl.col("answers").list.len() != 1)
    if several.height:
        raise ExportError(
            f"{several['item'][0]}: {several['answers'][0].len()} correct options, expected one; "
            f"{OTHERS}"
        )
    names = items["candidates"].unique().to_list()
    if len(names) != 1:
        raise ExportError(
            f"{relation}: {len(names)} candidate sets, expected one for all its items; {OTHERS}"
        )
    items = items.with_columns(answer=pl.col("answers").list.first().cast(pl.Int64))
    return items, options_of(sets)[names[0]]
