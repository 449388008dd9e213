"""An HTTP server in front of a SPARQL endpoint that injects planned faults over real sockets.

`Faults` assigns faults to requests by number or randomly with a seed. Clean answers are the
endpoint's original bytes, each fetched once. The server records what is needed to check politeness.
"""

import hashlib
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from typing import Any

from kgprobe.sources.sparql.paging import PARTS, Query

JSON_TYPE = "application/sparql-results+json"
SR353 = (
    "Virtuoso 22023 Error SR353: Sorted TOP clause specifies more then 30000 rows to sort. "
    "Only 10000 are allowed. Either decrease the offset and/or row count or use a scrollable cursor"
)
JAVA = "\njava.util.concurrent.TimeoutException\n\tat java.util.concurrent.FutureTask.get(Unknown)"
CANCELLED = "The SPARQL operation has been cancelled"
WAIT = 7  #: waiting time in a 429 or 503 of this server

#: Faults after which a retry or a smaller page may help
PASSING = (
    "rate seconds", "rate date", "rate bare", "rate nonsense",
    "status 500", "status 502", "status 503", "status 503 wait", "status 504",
    "cut short", "cut chunked", "cut java", "cut cancelled", "text appended",
    "cap", "partial", "partial 206", "reset before", "reset middle",
    "json as html", "xml", "html page", "empty",
    "hole", "short page", "double row", "no count", "count in words",
)  # fmt: skip
SLOW = ("late", "drip")
#: Faults that end a pull at once
FATAL = ("status 403", "status 500 SR353", "status 400")
#: Persistent well-formed but wrong answers
LIES = ("other vars", "page before", "a row too many", "number for text", "no type")
#: Behavior that engines are free to choose
HARMLESS = ("disorder",)


@dataclass
class Faults:
    """Faults by request number (from 1). With `seed`, random for the first `until` requests."""

    planned: Mapping[int, str] = field(default_factory=dict)
    seed: int | None = None
    until: int = 40
    share: float = 0.3
    kinds: Sequence[str] = PASSING

    def at(self, number: int) -> str:
        """Return the fault of a request, or the empty string."""
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
    running: int  #: requests in progress, including this one

    @property
    def is_count(self) -> bool:
        """Return whether this is the derived count query."""
        return "UNION" not in self.text

    @property
    def part(self) -> str:
        """Return the requested hash pattern, which distinguishes pages of a pull."""
        found = re.search(r'MD5\(STR\(\?\w+\)\), "([^"]*)"', self.text)
        return found[1] if found else ""


class Table:
    """All clean rows of a query as the endpoint's bytes, selectable by hash prefix."""

    def __init__(self, url: str, query: Query) -> None:
        self.head, rows, _ = split(fetch(url, query.page(0, PARTS)))
        self.by_hash: dict[str, list[str]] = {}
        for row in rows:
            name = json.loads(row)[query.divided]["value"]
            first = hashlib.md5(name.encode()).hexdigest()[:3]
            self.by_hash.setdefault(first, []).append(row)
        self.n = len(rows)

    def rows(self, part: str) -> list[str]:
        """Return all rows for "", else the rows whose hash matches a pattern such as ^(00|010)."""
        wanted = re.compile(part)
        return [r for key in sorted(self.by_hash) if wanted.match(key) for r in self.by_hash[key]]


def split(body: bytes) -> tuple[str, list[str], list[str]]:
    """Return an answer's head, its rows, and the rows that hold a count, as JSON text."""
    head, _, rest = body.decode().partition('"bindings":[')
    # the endpoint writes rows without spaces between them
    rows = re.split(r"(?<=\}\}),(?=\{)", rest.removesuffix("]}}"))
    counts = [row for row in rows if row.startswith('{"rows"')]
    return head, [row for row in rows if row and row not in counts], counts


def joined(head: str, rows: Sequence[str]) -> bytes:
    """Return a complete document of these rows."""
    return f'{head}"bindings":[{",".join(rows)}]}}}}'.encode()


def counted(rows: int | str) -> str:
    """Return a row that holds a count."""
    return json.dumps({"rows": {"type": "literal", "value": str(rows)}}).replace(" ", "")


def fetch(url: str, text: str) -> bytes:
    """Return the endpoint's answer to a query."""
    data = urllib.parse.urlencode({"query": text}).encode()
    request = urllib.request.Request(url, data=data, headers={"Accept": JSON_TYPE})
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())


class FaultServer(http.server.ThreadingHTTPServer):
    """Server of the table with faults; `now` is the clock for request times."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, table: Table, now: Callable[[], float] = time.time) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.table, self.now = table, now
        self.faults = Faults()
        self.seen: list[Seen] = []
        self.errors: list[float] = []
        self.hidden = 0  #: rows that are not yet in the count
        self.slow = 1.0
        self._lock, self._running = threading.Lock(), set[int]()
        self.closing = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """The query URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/query"

    def expect(self, faults: Faults) -> None:
        """Reset the server with a plan; answers still being sent belong to the previous plan."""
        self.faults, self.seen, self.errors, self._running = faults, [], [], set()

    def note(self, text: str, agent: str) -> tuple[Seen, set[int]]:
        """Count a request as in progress under its plan."""
        with self._lock:
            number = len(self.seen) + 1
            running = self._running
            running.add(number)
            fault = self.faults.at(number)
            if not re.search(r"\(.*(@|https?://).*\)", agent):
                fault = "status 403"
            seen = Seen(number, self.now(), text, agent, fault, len(running))
            self.seen.append(seen)
            if fault and fault not in HARMLESS:
                self.errors.append(seen.at)
            return seen, running

    def done(self, seen: Seen, running: set[int]) -> None:
        """Count a request as done; repeated calls are allowed."""
        with self._lock:
            running.discard(seen.number)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected clients."""

    def close(self) -> None:
        """Stop serving."""
        self.closing.set()
        self.shutdown()
        self.server_close()

    def __exit__(self, *_: object) -> None:
        self.close()


#: The head of an answer to the count query.
COUNTED = '{"head":{"vars":["rows"]},"results":{'


def _spoilt(row: str) -> str:
    """Return a row whose first value is a JSON number."""
    return re.sub(r'"value":"[^"]*"', '"value":17', row, count=1)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: FaultServer
    protocol_version = "HTTP/1.1"
    # head and body are two packets: the second would wait 40 ms
    disable_nagle_algorithm = True
    done: Callable[[], None]
    is_slow: bool

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        form = urllib.parse.parse_qs(self.rfile.read(length).decode())
        seen, running = self.server.note(form["query"][0], self.headers.get("User-Agent", ""))
        self.done = partial(self.server.done, seen, running)
        self.is_slow = seen.fault in SLOW
        try:
            self.answer(seen)
        finally:
            self.done()

    def end_headers(self) -> None:
        """Count the request as done before the client can see the end of its answer and send the
        next one; a client that is kept waiting may disconnect, but not send another request."""
        if not self.is_slow:
            self.done()
        super().end_headers()

    def answer(self, seen: Seen) -> None:
        """Send the clean answer, or the planned fault."""
        fault, table = seen.fault, self.server.table
        head, rows = table.head, table.rows(seen.part)
        counts = [counted(len(rows))]
        if seen.is_count:
            head, rows, counts = COUNTED, [], [counted(table.n - self.server.hidden)]
        body = joined(head, rows + counts)
        name = fault.split(" ")[0]
        if fault in ("hole", "short page", "double row", "no count", "count in words", *LIES):
            self.send(200, body if seen.is_count else self.lie(seen, head, rows, counts))
        elif name in ("status", "rate"):
            self.refuse(fault)
        elif name in ("cut", "text", "reset", "late", "drip"):
            self.break_off(fault, body)
        elif fault == "cap":
            few = joined(head, rows[: len(rows) // 2])
            self.send(200, few, {"X-SPARQL-MaxRows": str(len(rows) // 2)})
        elif fault == "partial":
            state = {"X-SQL-State": "S1TAT", "X-SQL-Message": "RC...: Anytime query timed out"}
            self.send(200, joined(head, ["{}"] if seen.is_count else rows[:3]), state)
        elif fault == "partial 206":
            self.send(206, joined(head, rows[:3]))
        elif fault == "json as html":
            self.send(200, body, {"Content-Type": "text/html; charset=utf-8"})
        elif fault == "xml":
            xml = b"<?xml version='1.0'?><sparql xmlns='http://www.w3.org/2005/sparql-results#'/>"
            self.send(200, xml, {"Content-Type": "application/sparql-results+xml"})
        elif fault == "html page":
            page = b"<html><head><title>502 Proxy\nError</title></head><body>Oops</body></html>"
            self.send(200, page, {"Content-Type": "text/html"})
        elif fault == "empty":
            self.send(200, b"")
        elif fault == "disorder":
            self.send(200, joined(head, [*rows[::-1], *counts] if rows else counts))
        else:
            assert not fault, f"no such fault: {fault}"
            self.send(200, body)

    def lie(self, seen: Seen, head: str, rows: list[str], counts: list[str]) -> bytes:
        """Send a wrong answer that looks right."""
        fault = seen.fault
        before = [s for s in self.server.seen[: seen.number - 1] if not s.is_count]
        if fault in ("page before", "a row too many"):
            # a correct answer to another query, as from a confused proxy
            here = "^(fff)" if seen.part != "^(fff)" else "^(000)"
            other = before[-1].part if before and before[-1].part != seen.part else here
            theirs = self.server.table.rows(other)
            if fault == "page before":
                return joined(head, [*theirs, counted(len(theirs))])
            return joined(head, [*rows, theirs[0], counted(len(rows) + 1)])
        changed = {
            "other vars": (head.replace('"label"', '"name"'), rows + counts),
            "hole": (head, rows[:1] + rows[2:] + counts),
            "short page": (head, rows[: len(rows) // 2] + counts),
            "double row": (head, rows[:1] + rows + [counted(len(rows) + 1)]),
            "no count": (head, rows),
            "count in words": (head, [*rows, counted("many")]),
            "number for text": (head, [_spoilt(rows[0]), *rows[1:], *counts]),
            "no type": (head, [rows[0].replace('"type":"uri",', ""), *rows[1:], *counts]),
        }
        return joined(*changed[fault])

    def refuse(self, fault: str) -> None:
        """Send an error status."""
        kind, code, *rest = fault.split(" ")
        headers = {"Content-Type": "text/plain"}
        wait = WAIT
        if kind == "rate":
            if code == "seconds":
                headers["Retry-After"] = str(wait)
            elif code == "date":
                headers["Retry-After"] = formatdate(int(self.server.now()) + wait, usegmt=True)
            elif code == "nonsense":
                headers["Retry-After"] = "as soon as you like"
            elif code != "bare":
                headers["Retry-After"] = code
            self.send(429, b"Too Many Requests", headers)
            return
        if rest == ["wait"]:
            headers["Retry-After"] = str(wait)
        text = SR353 if rest == ["SR353"] else f"trouble {code}"
        self.send(int(code), text.encode(), headers)

    def break_off(self, fault: str, body: bytes) -> None:
        """Send answers that end too early, too late, or at a wrong position."""
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
        """Send a complete answer."""
        self.send_response(status)
        for name, value in ({"Content-Type": JSON_TYPE} | dict(headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def head(self, length: int) -> None:
        """Send status and headers of a good answer of this length."""
        self.send_response(200)
        self.send_header("Content-Type", JSON_TYPE)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def chunked(self, body: bytes) -> None:
        """Send a properly terminated chunked body of any content."""
        self.send_response(200)
        self.send_header("Content-Type", JSON_TYPE)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")

    def reset(self) -> None:
        """Close with a TCP reset instead of an orderly end."""
        self.done()
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()
