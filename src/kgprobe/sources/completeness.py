"""Whether a pull has all rows, and what is written when it has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
import SPARQLWrapper

from kgprobe import __version__
from kgprobe.job import log
from kgprobe.sources.canonical import row_hash, write_result
from kgprobe.sources.errors import CountMismatch, ImplausibleTable, Place, SourceError
from kgprobe.sources.paging import Query
from kgprobe.sources.snapshots import Snapshot, Writer

if TYPE_CHECKING:
    from kgprobe.sources.sparql import Asker

EXAMPLES = 5


@dataclass
class Counts:
    """What the count query said before and after the pages; None with the reason."""

    before: int | None
    why_not_before: str = ""
    after: int | None = None
    why_not_after: str = "not asked: the count before was met"

    def fit(self, rows: int) -> bool:
        """Whether `rows` equals one of the counts or lies between them, or there is none."""
        known = [n for n in (self.before, self.after) if n is not None]
        return not known or min(known) <= rows <= max(known)


def mismatch(
    place: Place, counts: Counts, rows: int, writer: Writer, second_look: Callable[[], list[str]]
) -> CountMismatch:
    """The error for a wrong number of rows, with the keys that a second pull has and the first not.

    The pages from the first difference on are set aside, so that a later run asks for them again.
    """
    came = f"{rows:,} rows"
    expected = f"{counts.before} rows by the count query before, {counts.after} after"
    ours: list[str] = []
    for page in writer.pages:
        bindings = orjson.loads(writer.body(page))["results"]["bindings"]
        ours += [binding["key"]["value"] for binding in bindings]
    try:
        again = second_look()
    except SourceError as error:
        return CountMismatch(place, f"{came}; a second pull of the keys failed: {error}", expected)
    missing, surplus = sorted(set(again) - set(ours)), sorted(set(ours) - set(again))
    if not missing and not surplus:
        return CountMismatch(
            place,
            f"{came}, and the same {len(again):,} keys in a second pull: the count is what is off",
            expected,
            "run again later: the counts are asked anew, the pages stay",
        )
    first = min(missing[:1] + surplus[:1])
    number = next((p.number for p in writer.pages if p.last_key >= first), len(writer.pages) + 1)
    if not writer.pages[-1].rows:
        number = min(number, writer.pages[-1].number)
    writer.drop_from(number)
    return CountMismatch(
        place,
        f"{came}; a second pull of the keys has {len(missing):,} that are missing here "
        f"{missing[:EXAMPLES]} and lacks {len(surplus):,} {surplus[:EXAMPLES]}",
        expected,
        f"run again: pages from {number} on are set aside and asked for anew",
    )


def plausible(place: Place, query: Query, rows: int) -> None:
    """Compare a live pull with the band of its query: a warning outside, an error when halved."""
    if not query.band or query.band[0] <= rows <= query.band[-1]:
        return
    expected = f"{query.band[0]:,} to {query.band[-1]:,} rows"
    advice = "compare it with an older snapshot: python -m kgprobe.sources.drift OLD NEW"
    if rows < query.band[0] / 2:
        raise ImplausibleTable(place, f"{rows:,} rows", expected, f"look at the service; {advice}")
    log.warning("%s has %s rows, expected %s; %s", query.name, rows, expected, advice)


def summarise(writer: Writer, asker: Asker, counts: Counts, ended: str) -> Snapshot:
    """Write the table of all pages, then the record that makes the snapshot complete."""
    query, endpoint = writer.query, asker.endpoint
    frame = writer.frame()
    rows_sha256 = row_hash(frame)
    pages_sha256 = hashlib.sha256("".join(p.sha256 for p in writer.pages).encode()).hexdigest()
    provenance = {
        "source": query.source,
        "query": query.name,
        "parameters": query.parameters,
        "identity": query.identity,
        "group": query.group,
        "query_sha256": query.sha256,
        "pages_sha256": pages_sha256,
        "rows_sha256": rows_sha256,
    }
    write_result(frame, writer.folder / "result.parquet", provenance)
    return writer.finish(
        {
            "identity": query.identity,
            "group": query.group,
            "url": endpoint.url,
            "access": "local" if endpoint.is_local else "live",
            "snapshot": writer.folder.parent.name,
            "licence": endpoint.policy.licence,
            "started": writer.notes["started"],
            "ended": ended,
            "rows": frame.height,
            "rows_sha256": rows_sha256,
            "pages_sha256": pages_sha256,
            "count_before": counts.before,
            "count_before_reason": counts.why_not_before,
            "count_after": counts.after,
            "count_after_reason": counts.why_not_after,
            "last_key": writer.pages[-1].last_key,
            "page_sizes": sorted({page.size for page in writer.pages}),
            "retries": asker.retries,
            "waits": {"seconds": asker.gate.waits.seconds, "times": asker.gate.waits.times},
            "client": f"kgprobe/{__version__} SPARQLWrapper/{SPARQLWrapper.__version__}",
        }
    )
