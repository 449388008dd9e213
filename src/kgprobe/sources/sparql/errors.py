"""Errors of a pull: one class for each reaction to an error."""

# The class names are common terms; they need no suffix "Error".
# ruff: noqa: N818

from dataclasses import dataclass

AGAIN = "run again: it resumes after the finished pages"


@dataclass(frozen=True)
class Place:
    """The location of an event in a pull: endpoint, query, page.

    `page` is a number, 0 for the count query, or text if it is not a page; `part` describes the
    part of the hashes or the values that the page asks for.
    """

    endpoint: str
    query: str
    page: int | str = 0
    part: str = ""

    def __str__(self) -> str:
        words = self.page if isinstance(self.page, str) else f"page {self.page}"
        page = words if self.page else "count query"
        parts = (self.endpoint, f"query {self.query}", page, self.part)
        return ", ".join(part for part in parts if part)


class SourceError(RuntimeError):
    """A pull failed for good; the message says where, why and what to do. Finished pages stay."""

    #: whether and how a retry may succeed: "", "again", "smaller" (page) or "smaller now"
    reaction = ""
    #: seconds that the service asked all clients to wait
    wait = 0.0
    #: rows expected from the count query, or number of values that the pull asks for
    rows: int | None = None
    #: whether the service failed to count the rows because of their number
    uncounted = False

    def __init__(self, place: Place, came: str, expected: str, advice: str = "") -> None:
        self.place, self.came, self.expected, self.advice = place, came, expected, advice
        super().__init__()

    def __str__(self) -> str:
        lines = [f"{self.place}", f"came: {self.came}", f"expected: {self.expected}"]
        return "\n".join(lines + ([f"next: {self.advice}"] if self.advice else []))


class EndpointRefused(SourceError):
    """Refusal: the service does not accept this client, or there is no service at this URL."""


class QueryRejected(SourceError):
    """Refusal: the engine will never answer this query, so a retry would not help."""


class QueryTooLong(QueryRejected):
    """Refusal: the query is too long for the service even with the fewest values."""

    reaction = "smaller now"


class RateLimited(SourceError):
    """Rate limit: status 429, after the last attempt or beyond the longest wait."""

    reaction = "again"


class ServerTrouble(SourceError):
    """Broken: an error of the server, of a proxy before it, or of the connection."""

    reaction = "again"


class TimedOut(ServerTrouble):
    """Timeout: the service stopped the query, or no complete page came within the timeouts."""

    reaction = "smaller"


class PartialAnswer(SourceError):
    """Timeout or cap: only part of the rows came, because there are too many or they are slow."""

    reaction = "smaller"


#: Errors that can be due to the size of a query, if they persist with smaller pages; the service
#: may also just be slow.
BY_SIZE = (TimedOut, PartialAnswer)


class PageMismatch(SourceError):
    """Broken: a page has more or fewer rows than its own count, or duplicate rows."""

    reaction = "smaller"


class MalformedAnswer(SourceError):
    """Broken: valid JSON, but the answer to another query; a retry would not help."""


class BudgetExhausted(SourceError):
    """Too many failed responses per minute, repeatedly."""


class TooManyRows(SourceError):
    """Too many rows to page from a public endpoint; a dump is the right source."""


class ImplausibleTable(SourceError):
    """A public service returned less than half of the expected rows."""


class SnapshotError(SourceError):
    """A snapshot's folder belongs to another query, or its files differ from the record."""
