"""When an answer is accepted, and what it means when it is not (sources.md, section 4).

All functions are pure: they look at status, headers and body, and raise the error that fits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kgprobe.sources.errors import (
    AGAIN,
    CappedAnswer,
    EndpointRefused,
    MalformedAnswer,
    OrderViolation,
    PartialAnswer,
    Place,
    QueryRejected,
    RateLimited,
    ServerTrouble,
    TruncatedAnswer,
    UnexpectedStatus,
    WrongContentType,
)

JSON_TYPES = {"application/sparql-results+json", "application/json"}
#: Virtuoso's codes for a query that it will never answer: syntax, too many rows to sort, no
#: SERVICE, and compilation (transitive start, cost above the limit)
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


def check_status(answer: Answer, place: Place, agent: str) -> None:
    """Raise for every status but 200."""
    status = answer.status
    came = f"status {status}: {answer.start() or '(no text)'}"
    if status == 200:
        return
    if status in (401, 403):
        raise EndpointRefused(
            place,
            f"{came}; the User-Agent sent was {agent!r}",
            "status 200",
            "read the service's policy for automated clients, set a contact that can be reached, "
            "and wait before the next attempt",
        )
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
    if status in (500, 502, 503, 504):
        raise ServerTrouble(place, came, "status 200", AGAIN)
    raise UnexpectedStatus(place, came, "status 200", "look at the endpoint's URL in the config")


def check_page(
    answer: Answer, place: Place, variables: Sequence[str], size: int | None = None
) -> list[dict[str, dict[str, str]]]:
    """The bindings of an answer that is whole and fits the query; else the error that says why.

    Checks content type, the engine's own words on completeness, one closed JSON document, the
    variables and, where given, the number of rows.
    """
    if answer.content_type not in JSON_TYPES:
        raise WrongContentType(
            place,
            f"content type {answer.header('Content-Type') or '(none)'!r}: {answer.start()}",
            "application/sparql-results+json",
            AGAIN,
        )
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
    bindings: list[dict[str, dict[str, str]]] = document["results"]["bindings"]
    if size is not None and len(bindings) > size:
        raise MalformedAnswer(
            place, f"{len(bindings)} rows", f"at most {size}", "the endpoint ignores LIMIT"
        )
    return bindings


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
    end = answer.body[-200:].decode("utf-8", "replace")
    raise TruncatedAnswer(
        place,
        f"{len(answer.body)} bytes, {problem}, which end with {end!r}",
        "one closed document of SPARQL JSON",
        AGAIN,
    )


def check_keys(
    bindings: Sequence[Mapping[str, Mapping[str, str]]], place: Place, last: str
) -> list[str]:
    """The keys of a page, which rise strictly (by code point) and start above `last`."""
    keys = []
    for row, binding in enumerate(bindings):
        key = binding.get("key", {}).get("value")
        if key is None or key <= last:
            raise OrderViolation(
                place,
                f"row {row}: key {key!r} after {last!r}",
                "keys that rise strictly, by code point",
                "the key of the query is not unique, or the engine sorts in another order",
            )
        keys.append(key)
        last = key
    return keys


def check_count(answer: Answer, place: Place) -> int:
    """The number in the answer to a derived count query."""
    bindings = check_page(answer, place, ["rows"])
    value = bindings[0].get("rows", {}).get("value", "") if len(bindings) == 1 else ""
    if not value.isdigit():
        raise PartialAnswer(place, f"{bindings}", "one number", AGAIN)
    return int(value)
