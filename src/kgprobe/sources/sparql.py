"""Pulling a query, whole, from an endpoint: pages, retries, checks, snapshot (sources.md, sec. 4).

    with local_endpoint(["wikidata.nt"]) as endpoint:
        snapshot = pull("resources/queries/wikidata/facts.rq", endpoint,
                        "data/wikidata/2026-11", {"property": "P36"})
        snapshot.frame()

This is the only place that asks an endpoint again.
"""

import datetime
import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import polars as pl
from filelock import FileLock

from kgprobe.job import log, progress
from kgprobe.sources.answers import Answer, check_count, check_keys, check_page, check_status
from kgprobe.sources.canonical import terms
from kgprobe.sources.completeness import Counts, mismatch, plausible, summarise
from kgprobe.sources.errors import (
    BudgetExhausted,
    EndpointRefused,
    Place,
    RateLimited,
    SourceError,
    TooManyRows,
)
from kgprobe.sources.limits import LONGEST_WAIT, Clock, Gate, backoff, retry_after
from kgprobe.sources.paging import PageSize, Query, Values, read_query
from kgprobe.sources.policy import Endpoint, user_agent
from kgprobe.sources.snapshots import Page, Snapshot, Writer, cache_key
from kgprobe.sources.transport import ask

KEPT_HEADERS = ("server", "age", "date", "content-type")
#: A count is a help, not a need: a service that cannot give it is not asked for long
COUNT_ATTEMPTS = 2
T = TypeVar("T")


def pull(
    query: str | Path,
    endpoint: Endpoint,
    snapshot_dir: str | Path,
    parameters: Mapping[str, Values] | None = None,
    *,
    contact: str = "",
    page_size: int = 0,
    clock: Clock | None = None,
    seed: int | None = None,
) -> Snapshot:
    """All rows of a `.rq` file with its `parameters`, as a snapshot below `snapshot_dir`.

    `snapshot_dir` is data/{source}/{snapshot}; limits are shared by all pulls with the same data
    folder. A complete snapshot is returned as it is, an interrupted one is resumed. `page_size` 0
    takes the policy's; the rows do not depend on it. Raises SourceError, which leaves the finished
    pages in place, and ContactError before the first request to a public service without a contact.
    """
    asked = read_query(query, parameters)
    folder = Path(snapshot_dir) / asked.name
    state = Path(snapshot_dir).parent.parent / ".endpoints"
    state.mkdir(parents=True, exist_ok=True)
    owner = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    with FileLock(state / f"pull-{owner}.lock"):
        writer = Writer(folder, asked, endpoint.id)
        writer.open()
        if writer.complete:
            return Snapshot(folder)
        agent = user_agent(endpoint, contact)
        asker = Asker(endpoint, agent, Gate(endpoint, state, clock), random.Random(seed))
        size = PageSize(min(page_size or endpoint.policy.page_size, endpoint.policy.max_page_size))
        return _Pull(asked, asker, writer, size).run()


@dataclass
class Asker:
    """Asks one endpoint, and asks again where the table of failures says so."""

    endpoint: Endpoint
    agent: str
    gate: Gate
    waits: random.Random
    retries: dict[str, int] = field(default_factory=dict)

    def ask(
        self,
        text: Callable[[], str],
        place: Place,
        accept: Callable[[Answer], T],
        *,
        attempts: int = 0,
        smaller: Callable[[], None] = lambda: None,
        keep_bad: Callable[[bytes], None] = lambda body: None,
    ) -> T:
        """What `accept` makes of the answer to `text()`; `smaller` is called before some retries.

        `attempts` 0 takes the policy's. Raises SourceError when the cause is not one that passes,
        or the attempts are spent.
        """
        attempts = attempts or self.endpoint.policy.attempts
        for attempt in range(attempts):
            answer = None
            try:
                with self.gate.request(place):
                    answer = ask(self.endpoint, text(), self.agent, place)
                check_status(answer, place, self.agent)
                return accept(answer)
            except BudgetExhausted:
                raise
            except SourceError as error:
                self.gate.failed()
                least = self._heed(answer, error)
                if not error.reaction or attempt + 1 == attempts:
                    if answer is not None and answer.status == 200:
                        keep_bad(answer.body)
                    raise
                self._before_next(error, attempt, least, smaller)
        raise ValueError(f"{self.endpoint.id}: a policy needs at least one attempt")

    def _before_next(
        self, error: SourceError, attempt: int, least: float, smaller: Callable[[], None]
    ) -> None:
        kind = type(error).__name__
        self.retries[kind] = self.retries.get(kind, 0) + 1
        if error.reaction.startswith("smaller"):
            smaller()
        wait = 0.0 if error.reaction.endswith("now") else backoff(attempt, self.waits)
        wait = max(0.0, wait - least)  # the gate waits for what the service asked
        log.info("%s at %s; next attempt in %.1f s", kind, error.place, wait + least)
        if wait:
            self.gate.wait(wait, kind)

    def _heed(self, answer: Answer | None, error: SourceError) -> float:
        """Hold everybody for as long as a 429 or 503 asks; beyond an hour the pull stops."""
        if answer is None or answer.status not in (429, 503):
            return 0.0
        now = self.gate.clock.now()
        seconds = retry_after(answer.header("Retry-After"), answer.status, now)
        until = datetime.datetime.fromtimestamp(now + seconds, datetime.UTC)
        if answer.status == 429 or seconds > LONGEST_WAIT:
            error.came += f"; Retry-After: {answer.header('Retry-After') or '(none)'}"
            error.advice = f"come back at {until:%Y-%m-%d %H:%M:%S} UTC; the finished pages stay"
        self.gate.hold(min(seconds, LONGEST_WAIT))
        if seconds > LONGEST_WAIT:
            error.reaction = ""
        return seconds


@dataclass
class _Pull:
    """One pull under way."""

    query: Query
    asker: Asker
    writer: Writer
    size: PageSize

    def run(self) -> Snapshot:
        """Pages until the end, then the counts, then the table and the record."""
        if "started" not in self.writer.notes:
            self.writer.note(started=_now())
        counts = Counts(*self.count())
        most = self.asker.endpoint.policy.most_rows
        if most and (counts.before or 0) > most:
            raise TooManyRows(
                self.place(0),
                f"{counts.before:,} rows by the count query",
                f"at most {most:,} from {self.asker.endpoint.id}",
                "take this relation from a dump (sources.dumps), or raise the least sitelinks",
            )
        with progress(total=counts.before, desc=self.query.name, unit="rows") as bar:
            bar.update(self.rows())
            while not self.ended(counts.before):
                bar.update(self.page().rows)
                bar.set_postfix(
                    pages=len(self.writer.pages),
                    waits=f"{sum(self.asker.gate.waits.seconds.values()):.0f}s",
                    refresh=False,
                )
        if counts.before != self.rows():
            counts.after, counts.why_not_after = self.count()
        if not counts.fit(self.rows()):
            raise mismatch(self.place(0), counts, self.rows(), self.writer, self.second_look)
        if not self.asker.endpoint.is_local:
            plausible(self.place(0), self.query, self.rows())
        return summarise(self.writer, self.asker, counts, _now())

    def rows(self) -> int:
        """Rows of the finished pages."""
        return sum(page.rows for page in self.writer.pages)

    def ended(self, expected: int | None) -> bool:
        """Whether the finished pages are all: a short last page, confirmed by count or empty page.

        With several chunks there is no count, and a short page is believed.
        """
        if not self.writer.pages:
            return False
        last, chunks = self.writer.pages[-1], len(self.query.chunks)
        if last.chunk + 1 < chunks or last.rows == last.size:
            return False
        return last.rows == 0 or chunks > 1 or self.rows() == expected

    def page(self) -> Page:
        """Ask for the next page and keep it."""
        done = self.writer.pages
        number, last = len(done) + 1, self.last_key()
        chunk = done[-1].chunk + (done[-1].rows < done[-1].size) if done else 0
        chunk = min(chunk, len(self.query.chunks) - 1)
        place = self.place(number)
        variables = ("key", *self.query.variables)
        asked: list[tuple[str, int]] = []

        def text() -> str:
            asked.append((self.query.page(chunk, last, self.size.now), self.size.now))
            return asked[-1][0]

        def accept(answer: Answer) -> tuple[Answer, list[str], pl.DataFrame]:
            bindings = check_page(answer, place, variables, asked[-1][1])
            return answer, check_keys(bindings, place, last), terms(bindings, variables[1:])

        answer, keys, rows = self.asker.ask(
            text,
            place,
            accept,
            smaller=self.size.smaller,
            keep_bad=lambda body: self.writer.keep_bad(number, body),
        )
        if number == 1:
            self.writer.write_query(asked[-1][0])
        page = self.record(answer, number, chunk, asked[-1][1], last, keys)
        self.writer.add(answer.body, page, rows)
        self.size.accepted()
        return page

    def record(
        self, answer: Answer, number: int, chunk: int, size: int, last: str, keys: list[str]
    ) -> Page:
        """What journal and meta.json say of an accepted page."""
        kept = {k: v for k, v in answer.headers.items() if k in KEPT_HEADERS or k.startswith("x-")}
        snapshot = self.writer.folder.parent.name
        text = self.query.chunks[chunk]
        return Page(
            number=number,
            chunk=chunk,
            size=size,
            rows=len(keys),
            last_key=keys[-1] if keys else last,
            sha256=hashlib.sha256(answer.body).hexdigest(),
            cache_key=cache_key(self.asker.endpoint.id, text, snapshot, last),
            status=answer.status,
            url=answer.url,
            headers=kept,
        )

    def count(self) -> tuple[int | None, str]:
        """Rows by the derived count query, or None with the reason why there is no such number."""
        if len(self.query.chunks) > 1:
            return None, f"asked for in {len(self.query.chunks)} chunks of values"
        place = self.place(0)

        def accept(answer: Answer) -> int:
            return check_count(answer, place)

        try:
            return self.asker.ask(self.query.count, place, accept, attempts=COUNT_ATTEMPTS), ""
        except (EndpointRefused, RateLimited, BudgetExhausted):
            raise
        except SourceError as error:
            log.warning("no count for %s: %s", self.query.name, error)
            return None, f"{type(error).__name__}: {error.came}"

    def second_look(self) -> list[str]:
        """All keys, asked for once more and not kept."""
        keys: list[str] = []
        while True:
            place = Place(
                self.asker.endpoint.url,
                self.query.name,
                f"second look after {len(keys)} keys",
                (keys or [""])[-1],
            )
            size, last = self.size.now, (keys or [""])[-1]

            def accept(answer: Answer, place: Place = place, last: str = last) -> list[str]:
                return check_keys(check_page(answer, place, ["key"]), place, last)

            text = self.query.keys(0, last, size)
            found = self.asker.ask(lambda text=text: text, place, accept)  # type: ignore[misc]
            keys += found
            if not found:
                return keys

    def last_key(self) -> str:
        """The greatest key of the finished pages."""
        return self.writer.pages[-1].last_key if self.writer.pages else ""

    def place(self, page: int) -> Place:
        """Where the pull stands, for messages."""
        endpoint = self.asker.endpoint
        return Place(f"{endpoint.id} ({endpoint.url})", str(self.query.path), page, self.last_key())


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
