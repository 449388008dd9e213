"""Chapters of the report: what a paper or a stage has to show, as one file the report reads.

The rule that makes a chapter knows its tables; the report only arranges. A chapter is JSON, so
that one of them can be made anew without the others.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgprobe.schema import atomic
from kgprobe.tables import marks
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.grid import Cell, Grid


@dataclass(frozen=True)
class Chapter:
    """A chapter: `name` is its anchor, `lead` its first paragraph, `notes` are warnings.

    `grids` are printed, `folded` stand behind a line that opens them.
    """

    name: str
    title: str
    lead: str
    notes: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    folded: Sequence[Grid] = ()
    drawings: Sequence[Drawing] = ()


def write(chapter: Chapter, path: str | Path) -> None:
    """Write a chapter as JSON, whole or not at all; marked models get their note."""
    content = asdict(chapter)
    grids = [*chapter.grids, *chapter.folded]
    shown = [cell.text for grid in grids for row in grid.rows for cell in row]
    shown += [head for grid in grids for head in grid.heads]
    content["notes"] = [*chapter.notes, *marks.notes(shown)]
    for kind in ("grids", "folded"):
        for grid in content[kind]:
            grid["numeric"] = sorted(grid["numeric"])
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read(path: str | Path) -> Chapter:
    """The chapter of a file that `write` wrote."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    content["grids"] = [_grid(grid) for grid in content["grids"]]
    content["folded"] = [_grid(grid) for grid in content["folded"]]
    content["drawings"] = [Drawing(**drawing) for drawing in content["drawings"]]
    return Chapter(**content)


def _grid(content: dict[str, Any]) -> Grid:
    rows = [[Cell(**cell) for cell in row] for row in content["rows"]]
    return Grid(
        content["title"],
        content["heads"],
        rows,
        frozenset(content["numeric"]),
        content["caption"],
    )
