"""An HTTPS proxy on loopback that answers for known hosts, with its own certificate authority.

    with Proxy([GitHub(archives), ...], folder) as proxy:
        subprocess.run(command, env=os.environ | proxy.environment)

A program finds it by HTTPS_PROXY and trusts it by REQUESTS_CA_BUNDLE and SSL_CERT_FILE, so that no
address in the project changes. An unknown host is refused and recorded.
"""

import contextlib
import http.server
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import trustme

BLOCK = 1 << 16


@dataclass(frozen=True)
class Request:
    """A request of a client."""

    method: str
    host: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def url(self) -> str:
        """Return the full address."""
        return f"https://{self.host}{self.path}"


@dataclass
class Answer:
    """An answer: a body as bytes, as pieces (sent in chunks), or a file's range."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Iterable[bytes] = b""
    #: bytes after which the connection breaks off, or None
    cut: int | None = None


class Service(Protocol):
    """A public service."""

    hosts: Sequence[str]

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""


@dataclass(frozen=True)
class Seen:
    """A request that was answered."""

    at: float
    request: Request
    status: int


class Proxy(http.server.ThreadingHTTPServer):
    """The proxy as a context manager."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, services: Sequence[Service], folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Connect)
        self.services = {host: service for service in services for host in service.hosts}
        self.seen: list[Seen] = []
        self.unknown: list[str] = []
        authority = trustme.CA()
        self.bundle = folder / "authority.pem"
        authority.cert_pem.write_to_path(str(self.bundle))
        self.contexts: dict[str, ssl.SSLContext] = {}
        for host in self.services:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(host).configure_cert(context)
            self.contexts[host] = context
        self._lock = threading.Lock()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that a program needs."""
        address = f"http://127.0.0.1:{self.server_address[1]}"
        bundle = str(self.bundle)
        return {
            "HTTPS_PROXY": address, "https_proxy": address, "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost", "REQUESTS_CA_BUNDLE": bundle,
            "SSL_CERT_FILE": bundle,
        }  # fmt: skip

    def note(self, request: Request, status: int) -> None:
        """Record a request."""
        with self._lock:
            self.seen.append(Seen(time.time(), request, status))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected clients."""

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Connect(http.server.BaseHTTPRequestHandler):
    """The proxy side: CONNECT, then TLS in the name of the host."""

    server: Proxy
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_CONNECT(self) -> None:
        host = self.path.rsplit(":", 1)[0]
        context = self.server.contexts.get(host)
        if context is None:
            self.server.unknown.append(host)
            self.send_error(502, f"the replay does not know {host}")
            return
        self.send_response(200, "Connection established")
        self.end_headers()
        self.close_connection = True
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(self.connection, server_side=True) as secure,
        ):
            handler = type("Inner", (_Inner,), {"host": host})
            handler(secure, self.client_address, self.server)


class _Inner(http.server.BaseHTTPRequestHandler):
    """The service side, behind TLS."""

    server: Proxy
    host = ""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(length)
        request = Request(self.command, self.host, self.path, headers, body)
        answer = self.server.services[self.host].answer(request)
        self.server.note(request, answer.status)
        self._send(answer)

    do_GET = do_POST = do_HEAD = _serve  # noqa: N815

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        whole = answer.body if isinstance(answer.body, bytes) else None
        if whole is not None:
            self.send_header("Content-Length", str(len(whole)))
        elif "Content-Length" not in answer.headers:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = 0
        for piece in [whole] if whole is not None else answer.body:
            kept = piece if answer.cut is None else piece[: max(0, answer.cut - sent)]
            sent += len(kept)
            if whole is None and "Content-Length" not in answer.headers:
                self.wfile.write(f"{len(kept):x}\r\n".encode() + kept + b"\r\n" if kept else b"")
            else:
                self.wfile.write(kept)
            if answer.cut is not None and sent >= answer.cut:
                self.close_connection = True
                return
        if whole is None and "Content-Length" not in answer.headers:
            self.wfile.write(b"0\r\n\r\n")


def pieces(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield a file from an offset, a block at a time."""
    with open(path, "rb") as stream:
        stream.seek(start)
        while block := stream.read(BLOCK):
            yield block
