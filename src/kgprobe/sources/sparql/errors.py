"""What can go wrong with a pull, one class for each cause."""

# The names are the field's own; they need no "Error" at their end.
# ruff: noqa: N818

from dataclasses import dataclass


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
        told = (self.endpoint, f"query {self.query}", page, self.part)
        return ", ".join(word for word in told if word)


class SourceError(RuntimeError):
    """A pull failed for good; the message says where, what and what next. Finished pages stay."""

    #: which later attempts may succeed, with which page: "", "again" or "smaller"
    reaction = ""
    #: seconds that the service asks everybody to wait
    asked = 0.0
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


AGAIN = "run again: it goes on from the finished pages"


class EndpointRefused(SourceError):
    """401, 403, or words about the User-Agent: the service does not want this client."""


class QueryRejected(SourceError):
    """The engine says that the query is wrong here; asking again would not help."""


class UnexpectedStatus(SourceError):
    """A status that no SPARQL service should give, such as 404."""


class RateLimited(SourceError):
    """429, and the attempts or the longest wait are spent."""

    reaction = "again"


class ServerTrouble(SourceError):
    """500, 502, 503, or trouble with the connection."""

    reaction = "again"


class TimedOut(ServerTrouble):
    """The service stopped the query, or no whole page came within the timeouts."""

    reaction = "smaller"


class TruncatedAnswer(SourceError):
    """Status 200, but the body is not one closed JSON document."""

    reaction = "smaller"


class CappedAnswer(SourceError):
    """The server says that it cut the answer at its own number of rows."""

    reaction = "smaller now"


class PartialAnswer(SourceError):
    """The server says that it stopped early (Virtuoso's S1TAT)."""

    reaction = "smaller"


class WrongContentType(SourceError):
    """Not a SPARQL JSON answer by its content type: a proxy's page, for example."""

    reaction = "again"


#: What a query's size may cause, after all attempts with smaller pages; so may a bad day of the
#: service.
BY_SIZE = (TimedOut, CappedAnswer, PartialAnswer, TruncatedAnswer)


class MalformedAnswer(SourceError):
    """JSON, but not the answer to this query: other variables, or rows that were not asked for."""


class PageMismatch(SourceError):
    """The rows of a page are not as many as came with it as their number, or one is there twice."""

    reaction = "smaller"


class CountMismatch(SourceError):
    """The rows of all pages are not as many as the count query says, before and after."""


class BudgetExhausted(SourceError):
    """Too many failed answers a minute, again and again."""


class TooManyRows(SourceError):
    """More rows than paging a public endpoint can bring in; a dump is the right source."""


class ImplausibleTable(SourceError):
    """A public service has less than half of the rows that it should have."""


class SnapshotError(SourceError):
    """A snapshot's folder belongs to another query, or its files are not what was recorded."""
