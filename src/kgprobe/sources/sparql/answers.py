"""Errors of a pull: one class for each reaction to an error; the responses of a SPARQL service are
classified by them and checked to be complete.

`SIGNS` is the only classification: the first matching sign gives the meaning of a response; a
response without a sign is checked by its content. docs/sources.md prints the table. All functions
are pure: they inspect status, headers and body, and raise the matching error.
"""

# The class names are common terms; they need no suffix "Error".
# ruff: noqa: N818

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kgprobe.http import AGENT, CONTACT_ADVICE

AGAIN = "run again: it resumes after the finished pages"


class SourceError(RuntimeError):
    """A pull failed for good; the message says where, why and what to do. Finished pages stay.

    `place`: endpoint, query and page, and the part of the keys or values that the page asks for.
    """

    #: whether and how a retry may succeed: "", "again", "smaller" (page) or "smaller now"
    reaction = ""
    #: what was expected and what to do, unless an error says it more precisely
    expected, advice = "", AGAIN
    #: seconds that the service asked all clients to wait
    wait = 0.0
    #: rows by the count query, infinite if the service failed to count because of their number; or
    #: the number of values that the pull asks for
    rows: float | None = None

    def __init__(self, place: str, came: str, expected: str = "", advice: str = "") -> None:
        self.place, self.came = place, came
        self.expected, self.advice = expected or self.expected, advice or self.advice
        super().__init__()

    def __str__(self) -> str:
        what = f"came: {self.came}\nexpected: {self.expected}"
        return f"{self.place}\n{what}\nnext: {self.advice}"


class EndpointRefused(SourceError):
    """Refusal: the service does not accept this client."""

    expected, advice = "status 200", CONTACT_ADVICE


class NoService(EndpointRefused):
    """Refusal: there is no service at this URL."""

    advice = "look at the endpoint's URL in the config"


class QueryRejected(SourceError):
    """Refusal: the engine will never answer this query, so a retry would not help."""

    expected = "an answer to this query"
    advice = "the engine will not answer this text: change the query, or ask for fewer values"


class QueryTooLong(QueryRejected):
    """Refusal: the query is too long for the service even with the fewest values."""

    reaction = "smaller now"
    expected, advice = "a shorter query", "set a smaller `batch` in the table of endpoints"


class RateLimited(SourceError):
    """Rate limit: status 429, after the last attempt or beyond the longest wait."""

    reaction, expected = "again", "status 200"


class ServerTrouble(SourceError):
    """Broken: an error of the server, of a proxy before it, or of the connection."""

    reaction, expected = "again", "status 200 and application/sparql-results+json"


class TimedOut(ServerTrouble):
    """Timeout: the service stopped the query, or no complete page came within the timeouts."""

    reaction, expected = "smaller", "an answer within the service's time"


class PartialAnswer(SourceError):
    """Timeout or cap: only part of the rows came, because there are too many or they are slow."""

    reaction, expected = "smaller", "a complete answer, without a cap on its rows"


class CappedAnswer(PartialAnswer):
    """Cap on rows: no error of the service, so there is no need to wait."""

    reaction, advice = "smaller now", "set a smaller page size"


#: Errors that can be due to the size of a query, if they persist with smaller pages; the service
#: may also just be slow.
BY_SIZE = (TimedOut, PartialAnswer)


class PageMismatch(SourceError):
    """Broken: a page has more or fewer rows than its own count, or duplicate rows."""

    reaction, expected = "smaller", "as many rows as the page's own count says, each once"


class MalformedAnswer(SourceError):
    """Broken: valid JSON, but the answer to another query; a retry would not help."""

    advice = "another query was answered, or a proxy mixed up answers: look at the endpoint"


class BudgetExhausted(SourceError):
    """Too many failed responses per minute, repeatedly."""

    expected, advice = "a service that answers", f"wait until the service has recovered; {AGAIN}"


class TooManyRows(SourceError):
    """Too many rows to page from a public endpoint; a dump is the right source."""

    advice = (
        "ask for well-known subjects alone (a least number of sitelinks), or take it from a dump "
        "(sources.dumps)"
    )


class ImplausibleTable(SourceError):
    """A public service returned less than half of the expected rows."""


class SnapshotError(SourceError):
    """A snapshot's folder belongs to another query, or its files differ from the record."""

    advice = "name another snapshot in the config, or put the old query back"


#: Type of a term in SPARQL JSON -> in snapshots.
TYPES = {"uri": "iri", "literal": "literal", "typed-literal": "literal", "bnode": "bnode"}
JSON_TYPES = {"application/sparql-results+json", "application/json"}
#: Bytes at both ends of a body with status 200 in which an error message may be.
END = 1 << 16
ANY_STATUS = range(100, 600)
Bindings = list[dict[str, dict[str, str]]]


@dataclass(frozen=True)
class Answer:
    """An HTTP response, with the body decoded from its transfer encoding."""

    status: int
    headers: Mapping[str, str]  #: names in lower case
    body: bytes
    url: str = ""

    def header(self, name: str) -> str:
        """A header's value, or the empty string."""
        return self.headers.get(name.lower(), "")

    @property
    def is_json(self) -> bool:
        """Whether status and media type, without its parameters, are those of result rows."""
        media_type = self.header("Content-Type").split(";")[0].strip().lower()
        return self.status == 200 and media_type in JSON_TYPES

    def start(self) -> str:
        """Return the title of an HTML body, else its first characters, on one line."""
        text = self.body[:5000].decode("utf-8", "replace")
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.I | re.S)
        return " ".join((title[1] if title else text).split())[:200]

    def message(self) -> bytes:
        """Return the possible error message: no rows, and not the query, which Virtuoso repeats."""
        body = self.body
        if self.status == 200:
            body = body[-END:] if self.is_json else b"\n".join((body[:END], body[END:][-END:]))
        return body.split(b"SPARQL query:")[0]


@dataclass(frozen=True)
class Sign:
    """How services signal an error: by status, words and header, as far as they are given."""

    meaning: type[SourceError]
    services: str  #: which services send it, and its cause
    status: Collection[int] = ANY_STATUS
    words: bytes = b""  #: a regular expression, case-insensitive
    header: str = ""

    def fits(self, answer: Answer) -> bool:
        """Return whether a response has this sign; in responses with rows only headers count."""
        if answer.status not in self.status or (answer.is_json and not self.header):
            return False
        if self.header and not answer.header(self.header):
            return False
        return bool(re.search(self.words, answer.message(), re.I))


REJECTED = rb"\b(?-i:SP030|SR353|SQ070|SQ074|SQ200|TR\d{3}|TR\.\.\.|42000)(?!\w)"
#: Phrases with which engines and proxies report a timeout, in either word order.
OVER = (
    rb"timed[ -]?out|took too long|(?:query|gateway|first byte|read)[ -]?time-?out|"
    rb"(?:due to|\bby) (?:\w+ )?time-?out|"
    rb"exceed\w* (?:\w+ ){0,3}(?:time-?out|time[ -]?limit|deadline|execution time)|"
    rb"(?:time-?out|time[ -]?limit|deadline) ?(?:(?:is|was|has been) )?(?:exceed|expire|reach)|"
    rb"execution time[^\n]{0,80} exceed|operation has been cancelled"
)
JAVA = rb"TimeoutException|QueryTimeout|QueryInterrupted"
VIRTUOSO = rb"\bS1T(?:00|AT)\b"
MEMORY = (
    rb"tried to allocate|out ?of ?memory|(?:insufficient|not enough)(?: \w+)* memory|"
    rb"memory ?limit ?exceed"
)
#: The order matters: a timeout of QLever has the status of a rate limit.
SIGNS = (
    Sign(CappedAnswer, "DBpedia: its cap on rows", header="X-SPARQL-MaxRows"),
    Sign(PartialAnswer, "DBpedia: what it had when its time was over", header="X-SQL-State"),
    Sign(EndpointRefused, "all", (401, 403)),
    Sign(EndpointRefused, "Wikidata: a text with 403, 429 or 200", range(100, 500), AGENT.pattern),
    Sign(TimedOut, "Wikidata (Blazegraph), RDF4J: 500; 200 and a begun body", words=JAVA),
    Sign(TimedOut, "DBpedia: 500", words=VIRTUOSO),
    Sign(TimedOut, "QLever: 429; Jena: 503; Oxigraph: 200 and a begun body; proxies", words=OVER),
    Sign(TimedOut, "proxies", (408, 504, 522, 524)),
    Sign(PartialAnswer, "DBpedia (newer releases of Virtuoso)", (206,)),
    Sign(PartialAnswer, "QLever, GraphDB: 500, a cap on memory", range(500, 600), MEMORY),
    Sign(RateLimited, "all; Retry-After says how long", (429,)),
    Sign(QueryRejected, "all: syntax", (400,)),
    Sign(QueryTooLong, "all: more values than the service takes", (413, 414)),
    Sign(QueryRejected, "DBpedia: syntax, rows to sort, SERVICE, compilation", (500,), REJECTED),
    Sign(ServerTrouble, "all, and the proxies before them", range(500, 600)),
    Sign(ServerTrouble, "proxies: a page instead of rows", (200,)),
    Sign(NoService, "what is not a service, such as 404"),
)
#: the words of all timeouts
TIMEOUT = re.compile(b"|".join((JAVA, VIRTUOSO, OVER)), re.I)


def check_status(answer: Answer, place: str, agent: str) -> None:
    """Raise the error of the first matching sign; rows without a sign pass."""
    sign = next((sign for sign in SIGNS if sign.fits(answer)), None)
    if sign is None:
        return
    text = (sign.meaning is TimedOut and _timeout_line(answer)) or answer.start() or "(no text)"
    kind = f", {answer.header('Content-Type') or 'no type'}" if answer.status == 200 else ""
    if answer.url and answer.url not in place:
        kind += f", of {answer.url}"  # target of a redirect
    came = f"status {answer.status}{kind}: {text}"
    if sign.header:
        names = (sign.header, "X-SQL-Message")
        came = ", ".join(f"{n}: {answer.header(n)}" for n in names if answer.header(n))
    elif issubclass(sign.meaning, EndpointRefused):
        came += f"; the User-Agent sent was {agent!r}"
    raise sign.meaning(place, came)


def _timeout_line(answer: Answer) -> str:
    """Return the line of a message with the words of a timeout, which may follow a long query."""
    for line in answer.message().splitlines():
        if match := TIMEOUT.search(line):
            shown = line[max(0, match.start() - 150) : match.end() + 50]
            return shown.decode("utf-8", "replace").strip()
    return ""


def check_answer(answer: Answer, place: str, variables: Sequence[str]) -> Bindings:
    """Return the bindings of a complete response that fits the query, else raise an error: it must
    be one closed JSON document with the query's variables, and every cell is checked."""
    names, bindings = _closed(answer, place)
    if names != list(variables):
        raise MalformedAnswer(place, f"variables {names}", f"variables {list(variables)}")
    known = set(variables)
    for row, binding in enumerate(bindings):
        if wrong := _wrong(binding, known):
            expected = "SPARQL JSON: for each variable a type and a value that is text"
            advice = "the endpoint, or a proxy before it, does not speak the protocol"
            raise MalformedAnswer(place, f"row {row}: {wrong}", expected, advice)
    return bindings


def _closed(answer: Answer, place: str) -> tuple[list[Any], Bindings]:
    """Parse the body as one closed JSON document; return its head.vars and results.bindings."""
    try:
        document = orjson.loads(answer.body)
        lists = document["head"]["vars"], document["results"]["bindings"]
        if all(isinstance(one, list) for one in lists):
            return lists
        problem = "JSON of another shape"
    except orjson.JSONDecodeError as error:
        problem = f"not one closed JSON document ({error})"
    except (KeyError, TypeError):
        problem = "JSON without head.vars and results.bindings"
    came = f"{len(answer.body)} bytes, {problem}"
    if line := _timeout_line(answer):
        raise TimedOut(place, f"status 200: {came}: {line}")
    end = answer.body[-200:].decode("utf-8", "replace")
    expected = "one closed document of SPARQL JSON"
    raise PartialAnswer(place, f"{came}, which end with {end!r}", expected)


def _wrong(binding: object, variables: set[str]) -> str:
    """Describe the error in a row, or return ""."""
    if not isinstance(binding, dict):
        return f"{binding!r}"[:80]
    for name, cell in binding.items():
        if name not in variables:
            return f"?{name}, which is not a variable of the answer"
        is_text = isinstance(cell, dict) and all(isinstance(part, str) for part in cell.values())
        if not (is_text and cell.get("type") in TYPES and "value" in cell):
            return f"?{name} is {cell!r}"[:120]
    return ""


def check_page(
    answer: Answer,
    place: str,
    variables: Sequence[str],
    requested: Mapping[str, Callable[[str], bool]],
) -> Bindings:
    """Return the rows of a page; they must match the page's own count and be distinct.

    `requested` tells for some variables whether a value was requested. Order is never assumed.
    """
    bindings = check_answer(answer, place, ["rows", *variables])
    counts = [b["rows"]["value"] for b in bindings if "rows" in b]
    rows = [b for b in bindings if "rows" not in b]
    if counts != [str(len(rows))]:
        raise PageMismatch(place, f"{len(rows):,} rows, and {counts[:3]} as their number")
    if len({orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for row in rows}) != len(rows):
        raise PageMismatch(place, "a row that is there twice")
    for (name, fits), (number, row) in itertools.product(requested.items(), enumerate(rows)):
        if not (name in row and fits(row[name]["value"])):
            expected = f"only ?{name} that this page asked for"
            raise MalformedAnswer(place, f"row {number}: {row}"[:200], expected)
    return rows


def check_count(answer: Answer, place: str) -> int:
    """Return the number in the response to a derived count query."""
    bindings = check_answer(answer, place, ["rows"])
    value = bindings[0].get("rows", {}).get("value", "") if len(bindings) == 1 else ""
    if not value.isdecimal():
        raise PartialAnswer(place, f"{bindings}", "one number")
    return int(value)
