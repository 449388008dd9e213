"""Content blocks of a page: tables and figures, each with an anchor, its n, its data and its
command. On a long page most of them are collapsed."""

import re
from dataclasses import dataclass, field

from kgprobe.tables.report.grid import Grid
from kgprobe.tables.report.section import Drawing, Section

#: number of tables and figures of a page that are expanded; the others are collapsed
OPEN = 8
#: visible characters of a caption: two lines; number of visible notes at the top
IN_SIGHT, NOTES = 200, 2
#: characters of an anchor: ids of relations have any length, but file names at most 255 bytes
LONGEST = 150


@dataclass(frozen=True)
class Block:
    """A table, or a figure with its table as data."""

    anchor: str
    grid: Grid
    drawing: Drawing | None = None
    is_folded: bool = False

    @property
    def title(self) -> str:
        return self.drawing.title if self.drawing else self.grid.title

    @property
    def n(self) -> str:
        """The number of items behind its numbers, or the number of its rows."""
        counts = [cell.n for row in self.grid.rows for cell in row if cell.n]
        if not counts:
            rows = len(self.grid.rows)
            return f"{rows:,} row{'' if rows == 1 else 's'}"
        low, high = min(counts), max(counts)
        return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


@dataclass
class Room:
    """The number of blocks of a page that may still be expanded, and the anchors it has."""

    left: int = OPEN
    anchors: set[str] = field(default_factory=set)

    def anchor(self, name: str) -> str:
        """Return a unique anchor for a name, short enough for a file name."""
        plain = slug(name)[:LONGEST] or "part"
        unique, number = plain, 1
        while unique in self.anchors:
            number += 1
            unique = f"{plain}-{number}"
        self.anchors.add(unique)
        return unique


def slug(name: str) -> str:
    """Convert a name to a URL fragment, with code points for letters of other alphabets.

    Hyphens are kept, since names of models may differ in them.

    >>> slug("The capital – of [X]"), slug("首都"), slug("x--y")
    ('the-capital-of-x', 'u9996-u90fd', 'x--y')
    """
    numbered = re.sub(r"[^\W_]", lambda one: ascii(one[0])[1:-1], name.casefold())
    return re.sub(r"[^a-z0-9_.-]+", " ", numbered).strip().replace(" ", "-")


def anchor(part: str, title: str) -> str:
    """Return the anchor name of a table or figure in a part of a page; "" is the page itself."""
    return slug(f"{part}-{title}" if part else title)


def split_caption(text: str) -> tuple[str, str]:
    """Split a caption into visible sentences, at least the first, and collapsed ones.

    >>> split_caption("Mean over templates.")
    ('Mean over templates.', '')
    """
    if len(text) <= IN_SIGHT:
        return text, ""
    ends = [match.end() for match in re.finditer(r"[.;] ", text)] or [len(text)]
    end = max([e for e in ends if e <= IN_SIGHT], default=ends[0])
    return text[:end].rstrip(), text[end:]


def arranged(part: Section, room: Room, name: str = "") -> list[Block]:
    """Return the blocks of one part of a page, expanded as long as there is room: its first table,
    the figures, the other tables. Tables without rows are omitted. `name`: for a part that is not
    the page itself."""
    hidden = {id(grid) for grid in part.folded}
    tables = [
        Block(room.anchor(anchor(name, grid.title)), grid, None, id(grid) in hidden)
        for grid in part.tables
        if grid.rows
    ]
    drawn = [
        Block(room.anchor(anchor(name, one.name)), one.data, one, one.is_folded)
        for one in part.drawings
    ]
    if part.is_folded:
        return tables
    placed = []
    for one in [*tables[:1], *drawn, *tables[1:]]:
        is_folded = one.is_folded or room.left <= 0
        room.left -= not is_folded
        placed.append(Block(one.anchor, one.grid, one.drawing, is_folded))
    return placed
