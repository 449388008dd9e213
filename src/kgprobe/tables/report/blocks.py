"""What stands on a page: tables and figures, each with an anchor, its n, its data and how it was
made; those that would make the page too long are folded, tables that are too wide are cut."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kgprobe.tables.report.grid import Cell, Grid
from kgprobe.tables.report.section import Drawing, Section

#: CSS pixels at a width of 1280: what everything on a page may take together, a line of text and
#: its letters, a block that is folded, the frame and title of a section
OPEN, TEXT, LETTERS, FOLDED, TITLE = 5900, 24, 80, 40, 80
#: what a table takes at most before it scrolls in its box, a line of it (with small print), and a
#: figure
BOX, LINE, SMALL, DRAWN = 420, 29, 44, 600
#: of a table: what it may take in width, a letter, and the room beside it in a cell
WIDE, LETTER, BESIDE = 1190, 7.4, 17
#: letters of the widest cell that is not broken into lines
BROKEN = 34
#: letters of the words below a table or figure that are in sight: two lines; notes above them all
IN_SIGHT, NOTES = 200, 2


@dataclass(frozen=True)
class Block:
    """A table, or a figure with its table as data."""

    anchor: str
    grid: Grid
    drawing: Drawing | None = None
    is_folded: bool = False
    parts: Sequence[Grid] = ()

    @property
    def title(self) -> str:
        return self.drawing.title if self.drawing else self.grid.title

    @property
    def n(self) -> str:
        """The items behind its numbers, or how many rows it has."""
        counts = [cell.n for row in self.grid.rows for cell in row if cell.n]
        if not counts:
            rows = len(self.grid.rows)
            return f"{rows:,} row{'' if rows == 1 else 's'}"
        low, high = min(counts), max(counts)
        return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


@dataclass
class Room:
    """What is left of a page, and the anchors that it has."""

    left: float = OPEN
    anchors: set[str] = field(default_factory=set)

    def anchor(self, name: str) -> str:
        """A name as the one anchor of its kind."""
        plain = slug(name) or "part"
        unique, number = plain, 1
        while unique in self.anchors:
            number += 1
            unique = f"{plain}-{number}"
        self.anchors.add(unique)
        return unique


def slug(name: str) -> str:
    """A name as part of an address."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.casefold()).strip("-")


def anchor(part: str, title: str) -> str:
    """Where a table or figure of a part of a page stands; of the page itself, `part` is ""."""
    return slug(f"{part}-{title}" if part else title)


def split_caption(text: str) -> tuple[str, str]:
    """The sentences of a caption that are in sight, at least the first, and those that are folded.

    >>> split_caption("Mean over templates.")
    ('Mean over templates.', '')
    """
    if len(text) <= IN_SIGHT:
        return text, ""
    ends = [match.end() for match in re.finditer(r"[.;] ", text)] or [len(text)]
    end = max([e for e in ends if e <= IN_SIGHT], default=ends[0])
    return text[:end].rstrip(), text[end:]


def arranged(part: Section, room: Room, name: str = "") -> list[Block]:
    """The blocks of one part of a page, open as long as there is room: its first table, the
    figures, the other tables. A table without rows is none. `name`: of a part that is
    not the page itself."""
    tables = [Block(room.anchor(anchor(name, g.title)), g) for g in part.tables if g.rows]
    drawn = [Block(room.anchor(anchor(name, d.name)), d.data, d) for d in part.drawings]
    if part.is_folded:
        room.left -= FOLDED
        return [replace(one, parts=list(split_table(one.grid))) for one in tables]
    blocks = [*tables[:1], *drawn, *tables[1:]]
    texts = [part.lead, part.verdict, *part.notes[:NOTES]]
    room.left -= TITLE if name else 0
    room.left -= sum(TEXT * (1 + len(text) // LETTERS) + TEXT for text in texts if text)
    room.left -= FOLDED * len(blocks)
    folded = {id(grid) for grid in part.folded}
    folded |= {id(drawing.data) for drawing in part.drawings if drawing.is_folded}
    placed, figures = [], 0
    for one in blocks:
        # two figures stand side by side
        height = 0.0 if one.drawing and figures % 2 else _height(one)
        is_folded = id(one.grid) in folded or height > room.left
        if not is_folded:
            room.left -= height
            figures += bool(one.drawing)
        parts = [] if one.drawing else list(split_table(one.grid))
        placed.append(replace(one, is_folded=is_folded, parts=parts))
    return placed


def _height(block: Block) -> float:
    """Pixels that a block takes when it is open."""
    if block.drawing:
        return DRAWN + 130
    rows = block.grid.rows
    line = SMALL if any(cell.small for row in rows for cell in row) else LINE
    parts = len(list(split_table(block.grid)))
    return 130 + parts * (60 + min(BOX, 50 + line * len(rows)))


def split_table(grid: Grid) -> Iterator[Grid]:
    """The table in parts that are no wider than the page, each with the words of its rows."""
    first = min(grid.numeric, default=1)
    if first == 0 or sum(_width(grid, i) for i in range(first)) > WIDE * 2 / 3:
        first = 1
    heads = list(range(min(first, len(grid.heads))))
    base = sum(_width(grid, i) for i in heads)
    parts: list[list[int]] = [[]]
    used = base
    for i in range(len(heads), len(grid.heads)):
        if parts[-1] and used + _width(grid, i) > WIDE:
            parts.append([])
            used = base
        parts[-1].append(i)
        used += _width(grid, i)
    for columns in parts:
        kept = [*heads, *columns]
        numeric = frozenset(place for place, i in enumerate(kept) if i in grid.numeric)
        rows = [[row[i] for i in kept] for row in grid.rows]
        yield replace(grid, heads=[grid.heads[i] for i in kept], rows=rows, numeric=numeric)


def _width(grid: Grid, column: int) -> float:
    """Pixels that a column takes, about: words of its head, and cells, which break when long."""
    head = max((len(word) for word in grid.heads[column].split()), default=0) + 2
    cells = max((_letters(row[column]) for row in grid.rows), default=0)
    most = 99 if column in grid.numeric else BROKEN
    return max(head, min(cells, most)) * LETTER + BESIDE


def _letters(cell: Cell) -> float:
    return max(len(cell.text), 0.88 * len(cell.small))
