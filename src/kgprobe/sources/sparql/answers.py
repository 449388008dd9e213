"""When an answer is accepted, and what it means when it is not (docs/sources.md).

All functions are pure: they look at status, headers and body, and raise the error that fits.
`check_status` tells refusals, time-outs, rate limits and rejected queries apart, `check_answer`
what is no whole answer to the query.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kgprobe.http import CONTACT_ADVICE, about_agent
from kgprobe.sources.sparql.canonical import TYPES
from kgprobe.sources.sparql.errors import (
    AGAIN,
    CappedAnswer,
    EndpointRefused,
    MalformedAnswer,
    PageMismatch,
    PartialAnswer,
    Place,
    QueryRejected,
    RateLimited,
    ServerTrouble,
    TimedOut,
    TruncatedAnswer,
    UnexpectedStatus,
    WrongContentType,
)

JSON_TYPES = {"application/sparql-results+json", "application/json"}
#: What services say of a query that they stopped, or would not begin, for the time it takes:
#: Blazegraph, RDF4J, Jena and QLever, Virtuoso (its estimate as well), Oxigraph, and proxies.
#: The status is no help: it may be 200, 408, 429, 500, 503 or 504.
TIMED_OUT = re.compile(
    rb"timed[ -]?out|TimeoutException|QueryTimeout|deadline is expired|took too long"
    rb"|(?:gateway|due to|exceed\w* (?:the )?(?:\w+ )?)[ -]?time-?out|time-?out (?:exceed|expire)"
    rb"|time limit (?:was )?exceed|execution time[^\n]{0,80} exceeds"
    rb"|operation has been cancelled|\bS1T00\b",
    re.I,
)
TIMED_OUT_STATUS = (408, 504, 522, 524)
#: Bytes at the end of a body that is cut in which the reason may stand.
TAIL = 1 << 16
#: Virtuoso's codes for a query that it will never answer: syntax, too many rows to sort, no
#: SERVICE, and compilation (transitive start)
REJECTIONS = re.compile(r"\b(SP030|SR353|SQ070|SQ074|SQ200|TR\d{3}|TR\.\.\.|42000)(?!\w)")


@dataclass(frozen=True)
class Answer:
    """An HTTP answer as it came, with the body decoded from its transfer encoding."""

    status: int
    headers: Mapping[str, str]  #: names in lower case
    body: bytes
    url: str = ""

    def header(self, name: str) -> str:
        """A header's value, or the empty string."""
        return self.headers.get(name.lower(), "")

    @property
    def content_type(self) -> str:
        """The media type without its parameters."""
        return self.header("Content-Type").split(";")[0].strip().lower()

    def start(self, n: int = 200) -> str:
        """The title of an HTML body, else its first characters, on one line."""
        text = self.body[:5000].decode("utf-8", "replace")
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.I | re.S)
        return " ".join((title[1] if title else text).split())[:n]

    def time_out(self) -> str:
        """The line that says that the service stopped for lack of time, or the empty string."""
        for line in (
            self.body[-TAIL:].splitlines() if self.status == 200 else self.body.splitlines()
        ):
            if found := TIMED_OUT.search(line):
                shown = line[max(0, found.start() - 150) : found.end() + 50]
                return shown.decode("utf-8", "replace").strip()
        return ""


def check_status(answer: Answer, place: Place, agent: str) -> None:
    """Raise for what is no SPARQL JSON with status 200, by what it means."""
    status, is_json = answer.status, answer.content_type in JSON_TYPES
    if status == 200 and is_json:
        return
    came = f"status {status}: {answer.start() or '(no text)'}"
    if status in (401, 403) or (status < 500 and about_agent(answer.body)):
        raise EndpointRefused(
            place, f"{came}; the User-Agent sent was {agent!r}", "status 200", CONTACT_ADVICE
        )
    stopped = answer.time_out()
    if stopped or status in TIMED_OUT_STATUS:
        raise _timed_out(f"status {status}: {stopped or answer.start() or '(no text)'}", place)
    if status == 200:
        raise WrongContentType(
            place,
            f"content type {answer.header('Content-Type') or '(none)'!r}: {answer.start()}",
            "application/sparql-results+json",
            AGAIN,
        )
    if status == 206:  # newer Virtuosos say so, instead of 200, of a part of the rows
        raise PartialAnswer(place, came, "a complete answer, with status 200", AGAIN)
    if status == 429:
        raise RateLimited(place, came, "status 200", AGAIN)
    said = answer.start(2000).split("SPARQL query:")[0]  # Virtuoso repeats the query behind it
    if status in (400, 413, 414) or (status == 500 and REJECTIONS.search(said)):
        raise QueryRejected(
            place,
            came,
            "an answer to this query",
            "the engine will not answer this text: change the query, or ask for fewer values",
        )
    if status in (500, 502, 503):
        raise ServerTrouble(place, came, "status 200", AGAIN)
    raise UnexpectedStatus(place, came, "status 200", "look at the endpoint's URL in the config")


def _timed_out(came: str, place: Place) -> TimedOut:
    return TimedOut(place, came, "an answer within the service's time", AGAIN)


def check_answer(
    answer: Answer, place: Place, variables: Sequence[str]
) -> list[dict[str, dict[str, str]]]:
    """The bindings of an answer that is whole and fits the query; else the error that says why.

    Checks the engine's own words on completeness, one closed JSON document, the variables, and
    every cell.
    """
    cap = answer.header("X-SPARQL-MaxRows")
    if cap:
        raise CappedAnswer(
            place, f"X-SPARQL-MaxRows: {cap}", "no cap on the rows", "set a smaller page size"
        )
    state = answer.header("X-SQL-State") or answer.header("X-SQL-Message")
    if state:
        message = answer.header("X-SQL-Message") or "(no message)"
        raise PartialAnswer(place, f"X-SQL-State {state}: {message}", "a complete answer", AGAIN)
    document = _closed(answer, place)
    found = document["head"]["vars"]
    if list(found) != list(variables):
        raise MalformedAnswer(
            place,
            f"variables {found}",
            f"variables {list(variables)}",
            "another query was answered, or a proxy mixed up answers: look at the endpoint",
        )
    bindings = document["results"]["bindings"]
    known = set(variables)
    for row, binding in enumerate(bindings):
        if wrong := _wrong(binding, known):
            raise MalformedAnswer(
                place,
                f"row {row}: {wrong}",
                "SPARQL JSON: for each variable a type and a value that is text",
                "the endpoint, or a proxy before it, does not speak the protocol",
            )
    return list(bindings)


def _wrong(binding: object, variables: set[str]) -> str:
    """What is wrong with a row, if anything."""
    if not isinstance(binding, dict):
        return f"{binding!r}"[:80]
    for name, cell in binding.items():
        if name not in variables:
            return f"?{name}, which is no variable of the answer"
        if not (
            isinstance(cell, dict) and cell.get("type") in TYPES and type(cell.get("value")) is str
        ):
            return f"?{name} is {cell!r}"[:120]
    return ""


def check_page(
    answer: Answer,
    place: Place,
    variables: Sequence[str],
    divided: str = "",
    fits: Callable[[str], bool] = lambda value: True,
) -> list[dict[str, dict[str, str]]]:
    """The rows of a page, which are as many as its own count says, each there once.

    `fits` tells whether a value of the variable `divided` was asked for. Order is never assumed.
    """
    bindings = check_answer(answer, place, ["rows", *variables])
    counts = [b["rows"]["value"] for b in bindings if "rows" in b]
    rows = [b for b in bindings if "rows" not in b]
    expected = "as many rows as the page's own count says, each once"
    if len(counts) != 1 or not counts[0].isdecimal():
        came = f"{len(rows):,} rows, and {counts[:3]} as their number"
        raise PageMismatch(place, came, expected, AGAIN)
    if len(rows) != int(counts[0]):
        came = f"{len(rows):,} rows, and {int(counts[0]):,} as their number"
        raise PageMismatch(place, came, expected, AGAIN)
    seen: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        first = seen.setdefault(orjson.dumps(row, option=orjson.OPT_SORT_KEYS), number)
        if first != number:
            raise PageMismatch(place, f"row {number} is row {first} again: {row}", expected, AGAIN)
    for number, row in enumerate(rows):
        if divided and not (divided in row and fits(row[divided]["value"])):
            raise MalformedAnswer(
                place,
                f"row {number}: {row}"[:200],
                f"only ?{divided} that this page asked for",
                "another query was answered, or a proxy mixed up answers: look at the endpoint",
            )
    return rows


def _closed(answer: Answer, place: Place) -> dict[str, Any]:
    """The body as one closed JSON document with head.vars and results.bindings."""
    try:
        document = orjson.loads(answer.body)
        if isinstance(document["head"]["vars"], list) and isinstance(
            document["results"]["bindings"], list
        ):
            return dict(document)
        problem = "JSON of another shape"
    except orjson.JSONDecodeError as error:
        problem = f"not one closed JSON document ({error})"
    except (KeyError, TypeError):
        problem = "JSON without head.vars and results.bindings"
    came = f"{len(answer.body)} bytes, {problem}"
    if stopped := answer.time_out():
        raise _timed_out(f"status 200: {came}: {stopped}", place)
    end = answer.body[-200:].decode("utf-8", "replace")
    raise TruncatedAnswer(
        place,
        f"{came}, which end with {end!r}",
        "one closed document of SPARQL JSON",
        AGAIN,
    )


def check_count(answer: Answer, place: Place) -> int:
    """The number in the answer to a derived count query."""
    bindings = check_answer(answer, place, ["rows"])
    value = bindings[0].get("rows", {}).get("value", "") if len(bindings) == 1 else ""
    if not value.isdecimal():
        raise PartialAnswer(place, f"{bindings}", "one number", AGAIN)
    return int(value)
