"""Whether a pull has all rows."""

from dataclasses import dataclass

from kgprobe.job import log
from kgprobe.sources.sparql.errors import CountMismatch, ImplausibleTable, Place
from kgprobe.sources.sparql.paging import Query

#: Share of the rows that a public graph may gain or lose beyond both counts while it is pulled:
#: every page has been checked by its own count, and Wikidata is edited all the time.
MOVED = 0.01


@dataclass
class Counts:
    """What the count query said before and after the pages; None with the reason."""

    before: int | None
    why_not_before: str = ""
    after: int | None = None
    why_not_after: str = "not asked: the count before was met"

    def off(self, rows: int) -> int:
        """By how many `rows` lie outside of what the counts allow, which may not be known."""
        known = [n for n in (self.before, self.after) if n is not None] or [rows]
        return max(min(known) - rows, rows - max(known), 0)


def check_rows(place: Place, counts: Counts, rows: int, alive: bool) -> None:
    """Compare a pull with the counts before and after it; every page fitted its own already.

    `alive`: the graph may be edited while it is pulled. Raises CountMismatch.
    """
    off = counts.off(rows)
    if not off:
        return
    came = f"{rows:,} rows"
    expected = f"{counts.before} rows by the count query before, {counts.after} after"
    if not alive or off > MOVED * rows:
        raise CountMismatch(place, came, expected, "the graph changed: name another snapshot")
    log.warning("%s: %s, expected %s; it was edited meanwhile", place, came, expected)


def plausible(place: Place, query: Query, rows: int) -> None:
    """Compare a live pull with the band of its query: a warning outside, an error when halved."""
    if not query.band or query.band[0] <= rows <= query.band[-1]:
        return
    expected = f"{query.band[0]:,} to {query.band[-1]:,} rows"
    advice = "compare its result.parquet with that of an older snapshot"
    if rows < query.band[0] / 2:
        raise ImplausibleTable(place, f"{rows:,} rows", expected, f"look at the service; {advice}")
    log.warning("%s has %s rows, expected %s; %s", query.name, rows, expected, advice)
