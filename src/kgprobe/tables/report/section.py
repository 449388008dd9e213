"""Sections of the report: the content of a paper or stage, as one file that the report reads.

The rule that makes a section determines its tables; the report only arranges them. A section is
JSON, so that each can be remade without the others.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.schema import atomic
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.grid import Cell, Grid, of_rows


@dataclass(frozen=True)
class Drawing:
    """A figure: its part of the report, name, title, caption and chart.

    `part`: the name of a benchmark or section. `chart`: a Vega-Lite specification
    (`draw.specification`). `caption` describes the figure, `data` has the numbers. Folded:
    collapsed regardless of the room on the page.
    """

    part: str
    name: str
    title: str
    caption: str
    chart: dict[str, Any]
    data: Grid = field(default_factory=lambda: Grid("", [], []))
    is_folded: bool = False


def drawing(
    part: str,
    name: str,
    title: str,
    caption: str,
    figure: draw.Chart,
    rows: pl.DataFrame,
    is_folded: bool = False,
) -> Drawing:
    """Create a figure with the RESULTS that it shows."""
    chart, data = draw.specification(figure), of_rows(title, rows)
    return Drawing(part, name, title, caption, chart, data, is_folded)


@dataclass(frozen=True)
class Section:
    """A section: `name` is its anchor, `lead` its first paragraph, `notes` are warnings.

    `grids` are shown, `folded` are collapsed; `parts` are sections below it on its page, which are
    collapsed if they are `is_folded`. `verdict`: the sentence that states whether a requirement
    `is_met`. `terms`: definitions of the terms used with its numbers, for the report's glossary.
    """

    name: str
    title: str
    lead: str
    notes: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    folded: Sequence[Grid] = ()
    drawings: Sequence[Drawing] = ()
    parts: Sequence["Section"] = ()
    verdict: str = ""
    is_met: bool = True
    terms: Mapping[str, str] = field(default_factory=dict)
    is_folded: bool = False

    @property
    def tables(self) -> list[Grid]:
        """All of its tables in order, without those of its parts."""
        return [*self.grids, *self.folded]


def write(section: Section, path: str | Path) -> None:
    """Write a section as JSON, atomically, with the notes of its marks."""
    content = json.dumps(asdict(noted(section)), indent=1, ensure_ascii=False, default=sorted)
    with atomic(path) as temporary:
        temporary.write_text(content + "\n", encoding="utf-8")


def noted(section: Section, *also: str) -> Section:
    """Add the note of each mark that occurs in its tables, the numbers of its figures or the texts
    `also`, once."""
    signs = marks.notes([*_list_texts(section), *also])
    return replace(section, notes=list(dict.fromkeys([*section.notes, *signs])))


def _list_texts(section: Section) -> Iterator[str]:
    """Yield all texts of a section's tables and figures and of its parts."""
    for grid in [*section.tables, *(drawing.data for drawing in section.drawings)]:
        yield from grid.heads
        yield from (cell.text for row in grid.rows for cell in row)
    for part in section.parts:
        yield from _list_texts(part)


def read(path: str | Path) -> Section:
    """Read the section from a file written by `write`."""
    return _section(json.loads(Path(path).read_text(encoding="utf-8")))


def _section(content: dict[str, Any]) -> Section:
    for name in ("grids", "folded"):
        content[name] = [_grid(grid) for grid in content[name]]
    drawings = content["drawings"]
    content["drawings"] = [Drawing(**{**one, "data": _grid(one["data"])}) for one in drawings]
    content["parts"] = [_section(part) for part in content["parts"]]
    return Section(**content)


def _grid(content: dict[str, Any]) -> Grid:
    rows = [[Cell(**cell) for cell in row] for row in content["rows"]]
    return Grid(**{**content, "rows": rows, "numeric": frozenset(content["numeric"])})
