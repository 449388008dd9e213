"""Pull all rows of a query from an endpoint: pages, retries, checks, snapshot (docs/sources.md).

    endpoint = Endpoint("local", "", store=open_store(["wikidata.nt"], Path("data/.stores")))
    snapshot = pull("resources/queries/wikidata/facts.rq", endpoint,
                    "data/wikidata/2026-11", {"property": "P36"})
    snapshot.frame()

This is the only module that retries requests to an endpoint.
"""

import datetime
import hashlib
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock

from kgprobe import __version__
from kgprobe.http import LONGEST_WAIT, backoff, retry_after
from kgprobe.job import log, progress
from kgprobe.settings.types import LANGUAGES
from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql.answers import Answer, RateLimited, SourceError, TimedOut
from kgprobe.sources.sparql.endpoint import LIBRARY, Clock, Endpoint, RateLimiter, ask
from kgprobe.sources.sparql.paging import PARTS, Cuts, Query, read_query
from kgprobe.sources.sparql.snapshots import PageRecord, Snapshot, Writer, utc_now

KEPT_HEADERS = ("server", "age", "date", "content-type")
#: Attempts of a count query, which is helpful but not necessary
COUNT_ATTEMPTS = 2
#: Timeouts of an unchanged query before giving up
SAME_TIME_OUTS = 2


def pull(
    query: str | Path,
    endpoint: Endpoint,
    snapshot_dir: str | Path,
    parameters: Mapping[str, str | int | Sequence[str]] | None = None,
    *,
    languages: Sequence[str] = LANGUAGES,
    contact: str = "",
    most: int = 0,
    clock: Clock | None = None,
    seed: int | None = None,
) -> Snapshot:
    """Pull all rows of a `.rq` file with its `parameters` into a snapshot in `snapshot_dir`.

    `snapshot_dir` is data/{source}/{snapshot}; limits are shared by all pulls with the same data
    folder. A complete snapshot is returned unchanged, an interrupted one is resumed. Values that
    are requested in batches are listed first, in a snapshot of their own. If the divided variable
    has more than `most` values, about that many are pulled, those with the lowest hashes. Raises
    SourceError, keeping finished pages, and ContactError before the first request to a public
    service without a contact.
    """
    parsed = read_query(query, parameters, languages)
    if most:
        parsed = replace(parsed, most=most, name=f"{parsed.name}.most{most}")
    folder = Path(snapshot_dir)
    agent, waits = endpoint.agent(contact), random.Random(seed)
    limiter = RateLimiter(endpoint, folder.parent.parent / ".endpoints", clock)

    def pulled(one: Query, size: int) -> Snapshot:
        writer = Writer(folder / one.name, one, endpoint.id)
        owner = hashlib.sha256(str(writer.folder.resolve()).encode()).hexdigest()[:16]
        with FileLock(limiter.folder / f"pull-{owner}.lock"):
            if writer.open():
                return Snapshot(writer.folder)
            return _Pull(one, endpoint, agent, limiter, waits, writer, size).run()

    policy = endpoint.policy
    if parsed.in_batches and not parsed.values:
        listed = pulled(parsed.listing(), policy.listing).frame()[parsed.divided]
        parsed = replace(parsed, values=tuple(sorted(listed.to_list())))
    return pulled(parsed, policy.batch if parsed.in_batches else policy.page_size)


@dataclass
class _Pull:
    """One pull of a query whose values are known, which retries errors according to their
    `reaction`. `size`: maximum number of rows, or of values, of a page. `uncounted`: the service
    failed to count the rows because of their number."""

    query: Query
    endpoint: Endpoint
    agent: str
    limiter: RateLimiter
    waits: random.Random
    writer: Writer
    size: int
    uncounted: bool = False
    retries: Counter[str] = field(default_factory=Counter)

    def ask(self, cuts: Cuts | None = None) -> tuple[Answer, int]:
        """Request the next page of `cuts`, or else the count; return the accepted response and the
        number of rows in it or, for the count, of the query.

        After responses that were too large, `cuts` make the page smaller. Raises SourceError if a
        retry does not help, or after the last attempt.
        """
        query, policy, failures, same = self.query, self.endpoint.policy, 0, 0
        while True:
            place, answer = self.place(cuts), None
            try:
                text = query.page(*cuts.page) if cuts else query.count()
                with self.limiter.request(place):
                    answer = ask(self.endpoint, text, self.agent, place)
                answers.check_status(answer, place, self.agent)
                if cuts is None:
                    return answer, answers.check_count(answer, place)
                filters = query.build_page_filters(*cuts.page)
                return answer, len(answers.check_page(answer, place, query.variables, filters))
            except answers.BudgetExhausted:
                raise
            except SourceError as error:
                self.limiter.failed()
                self._heed(answer, error)
                if error.reaction.startswith("smaller") and not (cuts and cuts.smaller()):
                    same += isinstance(error, TimedOut)
                    if same == SAME_TIME_OUTS or isinstance(error, answers.QueryTooLong):
                        error.reaction = ""
                failures += 1
                # a rate limit says nothing about the count
                several = cuts or isinstance(error, RateLimited)
                if not error.reaction or failures >= (
                    policy.attempts if several else COUNT_ATTEMPTS
                ):
                    if answer and answer.status == 200 and cuts:
                        self.writer.keep_bad(answer.body)
                    raise
                kind = type(error).__name__
                self.retries[kind] += 1
                # a back-off may overlap with a wait that the limiter observes
                seconds = backoff(failures - 1, self.waits)
                if error.reaction.endswith("now"):
                    seconds = 0.0
                log.info("%s at %s; next attempt in %.1f s", kind, place, max(seconds, error.wait))
            if seconds:
                self.limiter.wait(seconds, kind)

    def _heed(self, answer: Answer | None, error: SourceError) -> None:
        """Block all requests for the Retry-After of a 429 or 503; over an hour, end the pull."""
        if answer is None or answer.status not in (429, 503):
            return
        now, limited = self.limiter.clock.now(), isinstance(error, RateLimited)
        # without the header only a rate limit means a wait, even if a timeout has status 429
        header = answer.header("Retry-After")
        error.wait = retry_after(header, 429 if limited else 503, now) or 0.0
        if limited or error.wait > LONGEST_WAIT:
            until = datetime.datetime.fromtimestamp(now + error.wait, datetime.UTC)
            error.came += f"; Retry-After: {header or '(none)'}"
            error.advice = (
                f"run again at {until:%Y-%m-%d %H:%M:%S} UTC; the finished pages are kept"
            )
        self.limiter.hold(min(error.wait, LONGEST_WAIT))
        if error.wait > LONGEST_WAIT:
            error.reaction = ""

    def run(self) -> Snapshot:
        """Count rows to size the pages; request all pages; then write the table and the record."""
        counted, why_not = self.count()
        expected, cuts = self.cuts(counted)
        # if the count failed, stop when there are enough rows
        enough = self.query.most if counted is None and self.query.most else math.inf
        with progress(total=expected, desc=self.query.name, unit="rows") as bar:
            bar.update(self.rows())
            while not cuts.ended and self.rows() < enough:
                try:
                    bar.update(self.page(cuts))
                except SourceError as error:
                    error.rows = self.query.total if self.query.in_batches else expected
                    if self.uncounted:
                        error.rows = math.inf
                    raise
                bar.set_postfix(
                    pages=len(self.writer.pages),
                    waits=f"{self.limiter.waits['seconds'].total():.0f}s",
                    refresh=False,
                )
        self.check_plausible()
        endpoint = self.endpoint
        return self.writer.finish(
            {
                "url": endpoint.url,
                "access": "local" if endpoint.is_local else "live",
                "license": endpoint.policy.license,
                "ended": utc_now(),
                "count_before": counted,
                "count_before_reason": why_not,
                "retries": self.retries,
                "waits": self.limiter.waits,
                "client": f"kgprobe/{__version__} {LIBRARY}",
            }
        )

    def check_plausible(self) -> None:
        """Compare a live pull with the band of its query: warn outside it, raise below half of it.

        Every page matched its own count; concurrent edits may or may not be included.
        """
        band = [int(bound) for bound in self.query.header.get("band", "").split()]
        rows = self.rows()
        if self.endpoint.is_local or not band or band[0] <= rows <= band[-1]:
            return
        expected = f"{band[0]:,} to {band[-1]:,} rows"
        advice = "compare its result.parquet with that of an older snapshot"
        if rows < band[0] / 2:
            came, advice = f"{rows:,} rows", f"look at the service; {advice}"
            raise answers.ImplausibleTable(self.place(), came, expected, advice)
        log.warning("%s has %s rows, expected %s; %s", self.query.name, rows, expected, advice)

    def rows(self) -> int:
        """Return the number of rows of the finished pages."""
        return sum(page.rows for page in self.writer.pages)

    def cuts(self, counted: int | None) -> tuple[int | None, Cuts]:
        """Return the expected number of rows, and the remaining pages: of `size` values, or of
        parts with about `size` rows.

        Raises answers.TooManyRows.
        """
        total, done, expected = self.query.total, self.writer.pages, counted
        start = done[-1].stop if done else 0
        if self.query.in_batches:
            return expected, Cuts(total, self.size, start)
        if counted and self.query.most:
            total = min(total, max(1, total * self.query.most // counted))
            expected = counted * total // PARTS
        most = self.endpoint.policy.most_rows
        if most and (expected or 0) > most:
            came = f"{expected:,} rows by the count query"
            allowed = f"at most {most:,} from {self.endpoint.id}"
            raise answers.TooManyRows(self.place(), came, allowed)
        # the sizes of parts vary randomly, so leave a margin of a tenth
        proportion = 0.9 * self.size / max(expected or 0, 1)
        full = total if proportion >= 0.9 else max(1, int(total * proportion))
        return expected, Cuts(total, full, start)

    def page(self, cuts: Cuts) -> int:
        """Request the next page and store it; return the number of its rows."""
        answer, rows = self.ask(cuts)
        kept = {k: v for k, v in answer.headers.items() if k in KEPT_HEADERS or k.startswith("x-")}
        number, sha256 = len(self.writer.pages) + 1, hashlib.sha256(answer.body).hexdigest()
        page = PageRecord(number, *cuts.page, rows, sha256, answer.status, answer.url, kept)
        self.writer.add(answer.body, page, self.query.page(*cuts.page))
        cuts.accepted()
        return rows

    def count(self) -> tuple[int | None, str]:
        """Return (rows by the derived count query, ""), or None with the reason for no count."""
        if self.query.in_batches:
            return None, "asked for in batches, each with its own count"
        try:
            return self.ask()[1], ""
        except (answers.EndpointRefused, answers.BudgetExhausted):
            raise
        except SourceError as error:
            if error.wait > LONGEST_WAIT:
                raise  # the pages would have to wait that long, too
            log.warning("no count for %s: %s", self.query.name, error)
            self.uncounted = isinstance(error, answers.BY_SIZE)
            return None, f"{type(error).__name__}: {error.came}"

    def place(self, cuts: Cuts | None = None) -> str:
        """Return the pull's current location, for messages: the next page, or else the count."""
        endpoint, query, page = self.endpoint, self.query, "count query"
        if cuts:
            what = f"?{query.divided}" if query.in_batches else "parts"
            part = f"{cuts.page[0] + 1:,} to {cuts.page[1]:,} of {query.total:,}"
            page = f"page {len(self.writer.pages) + 1}, {what} {part}"
        return f"{endpoint.id} ({endpoint.url}), query {query.path}, {page}"
