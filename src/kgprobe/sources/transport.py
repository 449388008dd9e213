"""One request over HTTP: built by SPARQLWrapper, opened with timeouts that it cannot set.

SPARQLWrapper knows one timeout for everything and loses the headers of failed answers; here a
connection has a connect and a read timeout, a whole answer has a deadline, and an answer of any
status is returned as it came. Nothing is retried here.
"""

import contextlib
import http.client
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
import zlib
from typing import Any

from kgprobe.sources.answers import Answer
from kgprobe.sources.errors import AGAIN, Place, ServerTrouble, SourceError, TimedOut
from kgprobe.sources.policy import Endpoint, Policy

BLOCK = 1 << 16
#: Bytes that a packed answer may unpack to; a page of 5,000 rows has a few 10^6.
UNPACKED = 1 << 28


def ask(endpoint: Endpoint, text: str, agent: str, place: Place) -> Answer:
    """Send `text` by POST and return the answer, whatever its status.

    Raises ServerTrouble when the connection fails or the body is shorter than announced, TimedOut
    when the read timeout or the deadline of the whole answer passes.
    """
    with _Deadline(endpoint.policy, direct=endpoint.is_local) as deadline:
        try:
            answer = _received(_wrapper(endpoint, text, agent, deadline).query().response)
        except urllib.error.HTTPError as error:
            with error:
                return _failed(error, place)
        except (OSError, http.client.HTTPException, zlib.error) as error:
            raise _trouble(error, deadline, endpoint, place) from error
        if deadline.passed:  # the body ended because its socket was closed
            raise _trouble(TimeoutError(), deadline, endpoint, place)
        return answer


def _failed(error: urllib.error.HTTPError, place: Place) -> Answer:
    """The answer of an error status; its body is for the message only, so a cut one will do."""
    try:
        body = error.read(1 << 20)
    except (OSError, http.client.HTTPException):
        body = b""
    headers = {name.lower(): value for name, value in error.headers.items()}
    return Answer(error.code, headers, body, error.url or place.endpoint)


def _received(response: http.client.HTTPResponse) -> Answer:
    """Read the whole body, checked against Content-Length and undone from gzip."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    blocks = []
    while block := response.read1(BLOCK):
        blocks.append(block)
    body = b"".join(blocks)
    announced = headers.get("content-length", "")
    if announced.isdigit() and int(announced) != len(body):
        raise http.client.IncompleteRead(body, int(announced) - len(body))
    if headers.get("content-encoding", "").lower() == "gzip":
        unzip = zlib.decompressobj(wbits=31)
        body = unzip.decompress(body, UNPACKED)
        if unzip.unconsumed_tail:
            raise zlib.error(f"the gzip stream unpacks to more than {UNPACKED:,} bytes")
        if not unzip.eof:
            raise zlib.error("the gzip stream ends in the middle")
    return Answer(response.status, headers, body, response.geturl())


def _trouble(
    error: Exception, deadline: "_Deadline", endpoint: Endpoint, place: Place
) -> SourceError:
    policy = endpoint.policy
    reason = getattr(error, "reason", error)
    if deadline.passed:
        return TimedOut(
            place, f"no whole answer within {policy.deadline:g} s", "a whole answer", AGAIN
        )
    if isinstance(reason, TimeoutError):
        return TimedOut(
            place,
            f"{reason}: connect timeout {policy.connect:g} s, read timeout {policy.read:g} s",
            "an answer in time",
            AGAIN,
        )
    refused = isinstance(reason, ConnectionRefusedError | socket.gaierror)
    return ServerTrouble(
        place,
        f"{type(reason).__name__}: {reason}",
        "an answer over HTTP",
        f"is {endpoint.url} right, and is the server up?" if refused else AGAIN,
    )


class _Deadline:
    """Closes the socket when the time for a whole answer is over, however slowly bytes drip."""

    def __init__(self, policy: Policy, direct: bool) -> None:
        self.policy, self.direct, self.passed = policy, direct, False
        self.socket: socket.socket | None = None
        self._timer = threading.Timer(policy.deadline, self._end)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.passed = True
        if self.socket is not None:
            with contextlib.suppress(OSError):  # closed in the same moment
                self.socket.shutdown(socket.SHUT_RDWR)

    def opener(self) -> urllib.request.OpenerDirector:
        """An opener whose connections keep the policy's timeouts and this deadline."""
        deadline = self

        def prepared(connection: http.client.HTTPConnection) -> None:
            sock = connection.sock
            sock.settimeout(deadline.policy.read)
            deadline.socket = sock

        class Plain(http.client.HTTPConnection):
            def connect(self) -> None:
                self.timeout = deadline.policy.connect
                super().connect()
                prepared(self)

        class Secure(http.client.HTTPSConnection):
            def connect(self) -> None:
                self.timeout = deadline.policy.connect
                super().connect()
                prepared(self)

        class PlainHandler(urllib.request.HTTPHandler):
            def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Plain, req)

        class SecureHandler(urllib.request.HTTPSHandler):
            def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(Secure, req)

        handlers: list[Any] = [PlainHandler, SecureHandler, _SamePost]
        if self.direct:
            handlers.append(urllib.request.ProxyHandler({}))
        return urllib.request.build_opener(*handlers)


class _SamePost(urllib.request.HTTPRedirectHandler):
    """Repeats the POST at the new address; urllib would turn it into a GET without the query."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if req.type == "https" and not newurl.startswith("https:"):
            return None  # never leave encryption; the status is reported as it came
        kept = {k: v for k, v in req.header_items() if k.lower() not in ("host", "content-length")}
        return urllib.request.Request(newurl, data=req.data, headers=kept)


def _wrapper(endpoint: Endpoint, text: str, agent: str, deadline: _Deadline) -> Any:
    """A SPARQLWrapper for one request. Imported late: it takes longer than everything else here."""
    import SPARQLWrapper

    class Wrapper(SPARQLWrapper.SPARQLWrapper):
        def _query(self) -> tuple[http.client.HTTPResponse, str]:
            return deadline.opener().open(self._createRequest()), self.returnFormat

    wrapper = Wrapper(endpoint.url, agent=agent)
    wrapper.setMethod(SPARQLWrapper.POST)
    wrapper.setRequestMethod(SPARQLWrapper.URLENCODED)
    wrapper.setReturnFormat(SPARQLWrapper.JSON)
    wrapper.setOnlyConneg(True)
    wrapper.addCustomHttpHeader("Accept", "application/sparql-results+json")
    wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
    if endpoint.policy.server_timeout_ms:
        wrapper.addParameter("timeout", str(endpoint.policy.server_timeout_ms))
    wrapper.setQuery(text)
    return wrapper
