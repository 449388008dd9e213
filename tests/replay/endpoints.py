"""Replays of SPARQL services in front of real engines with real data.

The behavior of each, and where it is documented, is in SERVICES of tests/replay/world.py.
"""

import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import requests

from tests.replay.proxy import Answer, Request

JSON_TYPE = "application/sparql-results+json"
POLICY = b"Scripts should use an informative User-Agent string with contact information\n"
JAVA = b"\njava.util.concurrent.TimeoutException\n\tat java.util.concurrent.FutureTask.get(Unknown)"
GATEWAY = b"<html><head><title>502 Bad Gateway</title></head><body>upstream</body></html>"
#: Seconds that the services ask to wait, kept short for the replay.
WAIT = 1


@dataclass
class Engine:
    """A query service: an engine on loopback with a front end.

    `planned`: the faults by request number.
    """

    hosts: tuple[str, ...]
    paths: tuple[str, ...]
    url: str
    planned: Mapping[int, str] = field(default_factory=dict)
    #: statements of relations that are larger than any excerpt, as their count query tells
    sizes: Mapping[str, int] = field(default_factory=dict)
    changed: Callable[[bytes], bytes] = lambda body: body
    queries: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer:
        """Return the engine's answer, or the planned fault."""
        if request.path.split("?")[0] not in self.paths:
            return Answer(404, {"Content-Type": "text/html"}, GATEWAY)
        if not re.search(r"\(.*(@|https?://).*\)", request.headers.get("user-agent", "")):
            return Answer(403, {"Content-Type": "text/plain"}, POLICY)
        form = urllib.parse.parse_qs(request.body.decode())
        query = form.get("query", [""])[0]
        with self._lock:
            self.queries.append(query)
            number = len(self.queries)
        count = self.told(query)
        if count is not None:
            return Answer(200, {"Content-Type": JSON_TYPE}, count)
        planned = self.planned.get(number, "")
        if planned.startswith("429"):
            wait = {"Retry-After": str(WAIT), "Content-Type": "text/plain"}
            return Answer(429, wait, b"Too Many Requests\n")
        if planned == "502":
            return Answer(502, {"Content-Type": "text/html"}, GATEWAY)
        found = requests.post(
            self.url,
            data={name: values[0] for name, values in form.items()},
            headers={"Accept": request.headers.get("accept", JSON_TYPE)},
            timeout=300,
        )
        kept = {
            name: value
            for name, value in found.headers.items()
            if name.lower().startswith("x-sp") or name.lower().startswith("x-sq")
        }
        kind = found.headers.get("Content-Type", JSON_TYPE)
        body = self.changed(found.content)
        if planned == "cut":
            # the status is sent before the engine knows that it will not finish
            return Answer(200, {"Content-Type": kind}, [body[: len(body) // 2], JAVA])
        if planned == "206":
            state = {"X-SQL-State": "S1TAT", "X-SQL-Message": "RC...: Anytime query timed out"}
            return Answer(206, {"Content-Type": kind, **state}, body[: len(body) // 2])
        return Answer(found.status_code, {"Content-Type": kind, **kept}, body)

    def told(self, query: str) -> bytes | None:
        """Return the count of a relation that no excerpt holds, if the query asks for it."""
        found = re.search(r"\?subject <?p:(P\d+)|\?subject p:(P\d+)", query)
        name = next((g for g in found.groups() if g), "") if found else ""
        if name not in self.sizes or "COUNT" not in query or "UNION" in query or "?known" in query:
            return None
        term = {"type": "literal", "value": str(self.sizes[name])}
        document = {"head": {"vars": ["rows"]}, "results": {"bindings": [{"rows": term}]}}
        return json.dumps(document).encode()


def collated(body: bytes) -> bytes:
    """Sort an answer by a collation that ignores punctuation: Q10 comes before Q1/."""
    try:
        document = json.loads(body)
    except ValueError:
        return body

    def key(binding: dict[str, dict[str, str]]) -> list[str]:
        return [re.sub(r"\W", "", cell["value"]).lower() for cell in binding.values()]

    bindings = document.get("results", {}).get("bindings", [])
    document["results"]["bindings"] = sorted(bindings, key=key, reverse=True)
    return json.dumps(document).encode()
