"""What can go wrong with a pull: one class for each way to go on."""

# The names are the field's own; they need no "Error" at their end.
# ruff: noqa: N818

from dataclasses import dataclass

AGAIN = "run again: it resumes after the finished pages"


@dataclass(frozen=True)
class Place:
    """Where in a pull something happened: endpoint, query, page.

    `page` is a number, 0 for the count query, or words for what is no page; `part` says which part
    of the hashes or which values it asks for.
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
    """A pull failed for good; the message says where, what and what next. Finished pages stay."""

    #: which later attempts may succeed, with which page: "", "again", "smaller" or "smaller now"
    reaction = ""
    #: seconds that the service asks everybody to wait
    wait = 0.0
    #: rows that the pull was expected to have, by its count query, or values that it asks for
    rows: int | None = None
    #: whether counting them was too much for the service
    uncounted = False

    def __init__(self, place: Place, came: str, expected: str, advice: str = "") -> None:
        self.place, self.came, self.expected, self.advice = place, came, expected, advice
        super().__init__()

    def __str__(self) -> str:
        lines = [f"{self.place}", f"came: {self.came}", f"expected: {self.expected}"]
        return "\n".join(lines + ([f"next: {self.advice}"] if self.advice else []))


class EndpointRefused(SourceError):
    """Refusal: the service does not want this client, or there is none at this address."""


class QueryRejected(SourceError):
    """Refusal: the engine will never answer this query; asking again would not help."""


class QueryTooLong(QueryRejected):
    """Refusal: the text is longer than the service takes, with the fewest values, too."""

    reaction = "smaller now"


class RateLimited(SourceError):
    """Rate limit: 429, and the attempts or the longest wait are spent."""

    reaction = "again"


class ServerTrouble(SourceError):
    """Broken: an error of the server, of a proxy before it, or of the connection."""

    reaction = "again"


class TimedOut(ServerTrouble):
    """Time-out: the service stopped the query, or no whole page came within the timeouts."""

    reaction = "smaller"


class PartialAnswer(SourceError):
    """Time-out or cap: only a part of the rows came, because they are too many or take too long."""

    reaction = "smaller"


#: What a query's size may cause, after all attempts with smaller pages; so may a bad day of the
#: service.
BY_SIZE = (TimedOut, PartialAnswer)


class PageMismatch(SourceError):
    """Broken: a page has more or fewer rows than its own count says, or one of them twice."""

    reaction = "smaller"


class MalformedAnswer(SourceError):
    """Broken: JSON, but the answer to another query, which no other attempt will mend."""


class BudgetExhausted(SourceError):
    """Too many failed answers a minute, again and again."""


class TooManyRows(SourceError):
    """More rows than paging a public endpoint can bring in; a dump is the right source."""


class ImplausibleTable(SourceError):
    """A public service has less than half of the rows that it should have."""


class SnapshotError(SourceError):
    """A snapshot's folder belongs to another query, or its files are not what was recorded."""
