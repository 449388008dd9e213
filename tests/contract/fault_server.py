"""An HTTP server before a SPARQL endpoint that misbehaves by plan, over real sockets.

`Faults` says which request gets which fault: by number, or drawn with a seed. The clean answers are
the endpoint's own: they are fetched once, whole, and cut into the pages that are asked for (a test
compares such pages with the endpoint's). The server notes what it needs to judge manners.
"""

import http.server
import json
import random
import re
import socket
import struct
import threading
import time
import urllib.parse
import urllib.request
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

JSON_TYPE = "application/sparql-results+json"
SR353 = (
    "Virtuoso 22023 Error SR353: Sorted TOP clause specifies more then 30000 rows to sort. "
    "Only 10000 are allowed. Either decrease the offset and/or row count or use a scrollable cursor"
)
JAVA = "\njava.util.concurrent.TimeoutException\n\tat java.util.concurrent.FutureTask.get(Unknown)"
CANCELLED = "The SPARQL operation has been cancelled"
WAIT = 7  #: what a 429 or 503 of this server asks to wait

#: Faults after which asking again may help, or a smaller page
PASSING = (
    "rate seconds", "rate date", "rate bare",
    "status 500", "status 502", "status 503", "status 503 wait", "status 504",
    "cut short", "cut chunked", "cut java", "cut cancelled", "text appended",
    "cap", "partial", "reset before", "reset middle",
    "json as html", "xml", "html page",
)  # fmt: skip
SLOW = ("late", "drip")
#: Faults that end a pull at once
FATAL = ("status 403", "status 500 SR353", "status 400")
#: Wrong answers that look right one by one
LIES = ("other vars", "disorder", "double row", "page before", "hole", "short page", "too many")


@dataclass
class Faults:
    """The plan: fault by request number (from 1). With `seed`, drawn for the first `until`."""

    planned: Mapping[int, str] = field(default_factory=dict)
    seed: int | None = None
    until: int = 40
    share: float = 0.3
    kinds: Sequence[str] = PASSING

    def at(self, number: int) -> str:
        """The fault of a request, or the empty string."""
        if number in self.planned:
            return self.planned[number]
        if self.seed is None or number > self.until:
            return ""
        drawn = random.Random(f"{self.seed} {number}")
        return drawn.choice(self.kinds) if drawn.random() < self.share else ""


@dataclass
class Seen:
    """One request as the server saw it."""

    number: int
    at: float
    text: str
    agent: str
    fault: str
    running: int  #: requests under way, with this one

    @property
    def is_count(self) -> bool:
        """Whether this is the derived count query."""
        return "(COUNT(*) AS ?rows)" in self.text

    @property
    def is_second_look(self) -> bool:
        """Whether only keys are asked for."""
        return "SELECT DISTINCT ?key\n" in self.text

    @property
    def last_key(self) -> str:
        """The key that the page starts after."""
        found = re.search(r'\?key > ("(?:\\.|[^"\\])*")', self.text)
        return str(json.loads(found[1])) if found else ""

    @property
    def size(self) -> int:
        """The rows that are asked for."""
        found = re.search(r"LIMIT (\d+)", self.text)
        return int(found[1]) if found else 0


class Table:
    """All clean rows of one query, in the endpoint's own bytes, cut into any page."""

    def __init__(self, url: str, text: str) -> None:
        body = fetch(url, text).decode()
        self.head, _, rest = body.partition('"bindings":[')
        # the endpoint writes rows without blanks between them
        self.rows = re.split(r"(?<=\}\}),(?=\{)", rest.removesuffix("]}}"))
        self.keys = [b["key"]["value"] for b in json.loads(body)["results"]["bindings"]]
        assert len(self.rows) == len(self.keys)

    def slice(self, last: str, size: int) -> list[str]:
        """The rows after a key, as JSON text."""
        start = bisect_right(self.keys, last)
        return self.rows[start : start + size]

    def body(self, rows: Sequence[str]) -> bytes:
        """A whole document of these rows."""
        return f'{self.head}"bindings":[{",".join(rows)}]}}}}'.encode()

    def count(self, rows: int) -> bytes:
        """The answer to the count query."""
        term = {"type": "literal", "value": str(rows)}
        return json.dumps(
            {"head": {"vars": ["rows"]}, "results": {"bindings": [{"rows": term}]}}
        ).encode()


def fetch(url: str, text: str) -> bytes:
    """The endpoint's answer to a query."""
    data = urllib.parse.urlencode({"query": text}).encode()
    request = urllib.request.Request(url, data=data, headers={"Accept": JSON_TYPE})
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())


class FaultServer(http.server.ThreadingHTTPServer):
    """Serves the table with faults; `now` is the clock that requests are noted with."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, table: Table, now: Callable[[], float] = time.time) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.table, self.now = table, now
        self.faults = Faults()
        self.seen: list[Seen] = []
        self.errors: list[float] = []
        self.hidden = 0  #: rows at the end that are not there yet
        self.grow_at = 0  #: the request from which on they are
        self.slow = 0.5
        self._lock, self._running = threading.Lock(), 0
        self.closing = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """The query URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/query"

    def expect(self, faults: Faults) -> None:
        """Begin anew with a plan."""
        self.faults, self.seen, self.errors = faults, [], []

    def note(self, text: str, agent: str) -> Seen:
        """Count a request in."""
        with self._lock:
            self._running += 1
            number = len(self.seen) + 1
            fault = self.faults.at(number)
            if not re.search(r"\(.*(@|https?://).*\)", agent):
                fault = "status 403"
            seen = Seen(number, self.now(), text, agent, fault, self._running)
            self.seen.append(seen)
            if fault and fault not in LIES:
                self.errors.append(seen.at)
            return seen

    def done(self) -> None:
        """Count a request out."""
        with self._lock:
            self._running -= 1

    def all_rows(self, number: int) -> int:
        """How many rows there are for a request."""
        return len(self.table.rows) - (self.hidden if number < self.grow_at else 0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the game."""

    def close(self) -> None:
        """Stop serving."""
        self.closing.set()
        self.shutdown()
        self.server_close()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: FaultServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        form = urllib.parse.parse_qs(self.rfile.read(length).decode())
        seen = self.server.note(form["query"][0], self.headers.get("User-Agent", ""))
        try:
            self.answer(seen)
        finally:
            self.server.done()

    def answer(self, seen: Seen) -> None:
        """The clean answer, or what the plan says."""
        fault, table = seen.fault, self.server.table
        if seen.is_count:
            rows: list[str] = []
            body = table.count(self.server.all_rows(seen.number))
        else:
            rows = table.slice(seen.last_key, seen.size)
            rows = rows[
                : max(
                    0, self.server.all_rows(seen.number) - bisect_right(table.keys, seen.last_key)
                )
            ]
            if seen.is_second_look:
                head = '{"head":{"vars":["key"]},"results":{'
                rows = [re.sub(r',"thing".*', "}", row) for row in rows]
                body = f'{head}"bindings":[{",".join(rows)}]}}}}'.encode()
            else:
                body = table.body(rows)
        name = fault.split(" ")[0]
        if fault in LIES:
            self.send(200, self.lie(seen, rows, body))
        elif name in ("status", "rate"):
            self.refuse(fault)
        elif name in ("cut", "text", "reset", "late", "drip"):
            self.break_off(fault, body)
        elif fault == "cap":
            few = table.body(rows[: len(rows) // 2]) if rows else body
            self.send(200, few, {"X-SPARQL-MaxRows": str(len(rows) // 2)})
        elif fault == "partial":
            state = {"X-SQL-State": "S1TAT", "X-SQL-Message": "RC...: Anytime query timed out"}
            empty = b'{"head":{"vars":["rows"]},"results":{"bindings":[{}]}}'
            self.send(200, empty if seen.is_count else table.body(rows[:3]), state)
        elif fault == "json as html":
            self.send(200, body, {"Content-Type": "text/html; charset=utf-8"})
        elif fault == "xml":
            xml = b"<?xml version='1.0'?><sparql xmlns='http://www.w3.org/2005/sparql-results#'/>"
            self.send(200, xml, {"Content-Type": "application/sparql-results+xml"})
        elif fault == "html page":
            page = b"<html><head><title>502 Proxy\nError</title></head><body>Oops</body></html>"
            self.send(200, page, {"Content-Type": "text/html"})
        else:
            assert not fault, f"no such fault: {fault}"
            self.send(200, body)

    def lie(self, seen: Seen, rows: list[str], body: bytes) -> bytes:
        """A wrong answer that looks right."""
        table = self.server.table
        if seen.is_count:
            return body
        at = bisect_right(table.keys, seen.last_key)
        if seen.fault == "other vars":
            return body.replace(b'"label"', b'"name"')
        if seen.fault == "disorder":
            return table.body(rows[1:2] + rows[:1] + rows[2:])
        if seen.fault == "double row":
            return table.body((table.rows[at - 1 : at] + rows)[: seen.size])
        if seen.fault == "page before":
            return table.body(table.rows[max(0, at - seen.size) : at])
        if seen.fault == "hole":
            return (
                table.body(rows[:1] + rows[2:])
                if len(rows) < seen.size
                else table.body(rows[:1] + table.rows[at + 2 : at + seen.size + 1])
            )
        if seen.fault == "short page":
            return table.body(rows[: len(rows) // 2])
        assert seen.fault == "too many"
        return table.body(table.rows[at : at + seen.size + 1])

    def refuse(self, fault: str) -> None:
        """An error status."""
        kind, code, *rest = fault.split(" ")
        headers = {"Content-Type": "text/plain"}
        wait = WAIT
        if kind == "rate":
            if code == "seconds":
                headers["Retry-After"] = str(wait)
            elif code == "date":
                headers["Retry-After"] = formatdate(int(self.server.now()) + wait, usegmt=True)
            elif code.isdigit():
                headers["Retry-After"] = code
            self.send(429, b"Too Many Requests", headers)
            return
        if rest == ["wait"]:
            headers["Retry-After"] = str(wait)
        text = SR353 if rest == ["SR353"] else f"trouble {code}"
        self.send(int(code), text.encode(), headers)

    def break_off(self, fault: str, body: bytes) -> None:
        """Answers that stop too early, too late, or not where they should."""
        half = len(body) // 2
        if fault == "reset before":
            self.reset()
        elif fault in ("cut short", "reset middle"):
            self.head(len(body))
            self.wfile.write(body[:half])
            if fault == "cut short":
                self.close_connection = True
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.reset()
        elif fault in ("cut chunked", "cut java", "cut cancelled", "text appended"):
            ends = {"cut java": JAVA, "cut cancelled": CANCELLED, "text appended": JAVA}
            kept = body if fault == "text appended" else body[:half]
            self.chunked(kept + ends.get(fault, "").encode())
        elif fault == "late":
            self.server.closing.wait(self.server.slow)
            self.send(200, body)
        else:
            assert fault == "drip"
            self.head(len(body))
            for byte in body:
                self.wfile.write(bytes([byte]))
                if self.server.closing.wait(self.server.slow / 20):
                    return

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A complete answer."""
        self.send_response(status)
        for name, value in ({"Content-Type": JSON_TYPE} | dict(headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def head(self, length: int) -> None:
        """Status and headers of a good answer of this length."""
        self.send_response(200)
        self.send_header("Content-Type", JSON_TYPE)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def chunked(self, body: bytes) -> None:
        """A properly ended chunked body, whatever it holds."""
        self.send_response(200)
        self.send_header("Content-Type", JSON_TYPE)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")

    def reset(self) -> None:
        """Close with a TCP reset instead of an orderly end."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()
