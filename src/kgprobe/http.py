"""HTTP requests with timeouts, redirects, Retry-After and retries; all of the package's HTTP.

    with Session() as session, session.open_response("GET", url, Timeouts(10, 60)) as answer:
        ...  # a requests.Response of any status, whose body has not been read yet

Callers interpret the responses. This module only knows redirects and status 429.
"""

import contextlib
import datetime
import importlib.metadata
import os
import random
import re
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from kgprobe import __version__

T = TypeVar("T")
BLOCK = 1 << 16
#: Maximum number of redirects that are followed in a row.
HOPS = 10
#: Headers that are not sent to other hosts after a redirect.
SECRET = {"authorization", "cookie"}
#: Seconds: the longest Retry-After that bulk transfers wait for, and the wait of a 429 without one.
LONGEST_WAIT, UNNAMED_WAIT = 3600.0, 60.0
#: Seconds: ten years, the upper limit of a Retry-After, so that it can be added to a date.
FOREVER = 315_360_000.0
#: Schemes a redirect may lead to: never from https to http, and never to files or programs.
ONWARDS = {"https": {"https"}, "http": {"http", "https"}}


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect, between two pieces of a response, for all of it (0: no limit)."""

    connect: float
    read: float
    whole: float = 0.0


#: Advice for a service that refuses clients without contact information.
CONTACT_ADVICE = (
    "set `contact` in the config, or KGPROBE_CONTACT, to an email address or a web page where you "
    "can be reached: services refuse clients whose User-Agent has no contact. If it has one, read "
    "the service's policy for automated clients"
)
AGENT = re.compile(rb"user[ _-]?agent|(?:robot|bot) policy", re.I)


def about_agent(body: bytes) -> bool:
    """Return whether an error response mentions the User-Agent: then retries do not help."""
    return bool(AGENT.search(body[:BLOCK]))


class NoAnswerError(RuntimeError):
    """No complete response; `reason` is the innermost error, TimeoutError after a timeout."""

    def __init__(self, reason: BaseException) -> None:
        self.reason = reason
        super().__init__(describe(reason))


def describe(reason: BaseException) -> str:
    """Describe why a connection failed; an unresolved host name is reported as no network."""
    if isinstance(reason, socket.gaierror):
        return f"no network: a host name cannot be resolved ({reason})"
    return f"{type(reason).__name__}: {reason}"


class PassingError(RuntimeError):
    """A failure that a retry may fix; `wait` is the minimum number of seconds before it.

    `status` is the HTTP status, 0 if there was none.
    """

    def __init__(self, message: str, wait: float | None = None, status: int = 0) -> None:
        super().__init__(message)
        self.wait, self.status = wait, status


class ContactError(ValueError):
    """A public service would be queried without a contact address."""


def contact_of(given: str) -> str:
    """Return KGPROBE_CONTACT, which overrides the contact `given` in the config; "" for a blank
    one."""
    return os.environ.get("KGPROBE_CONTACT", "").strip() or given.strip()


def user_agent(
    service: str,
    contact: str,
    library: str = f"requests/{importlib.metadata.version('requests')}",
    is_local: bool = False,
) -> str:
    """Return the User-Agent: name, version, project, contact, and the underlying library.

    `contact` comes from the config (see `contact_of`). Raises ContactError if `service` is public
    and none is set, since services refuse or slow down such clients, or if no header can hold it.
    """
    contact = contact_of(contact)
    if not contact and not is_local:
        raise ContactError(
            f"{service} is a public service and asks for a contact: set `contact:` in the config "
            "or KGPROBE_CONTACT to an email address or a web page"
        )
    fits = re.fullmatch(r"[\x20-\x7e\xa0-\xff]*", contact)
    if not fits and not is_local:
        raise ContactError(
            f"the contact {contact!r} has characters that no HTTP header can hold: set `contact:` "
            "in the config or KGPROBE_CONTACT to a plain email address or web page"
        )
    urls = importlib.metadata.metadata("kgprobe").get_all("Project-URL") or []
    project = [url.partition(", ")[2] for url in urls[:1]]
    about = "; ".join(filter(None, [*project, contact if fits else ""]))
    return f"kgprobe/{__version__} ({about}) {library}"


class Session(requests.Session):
    """A session for one thread, whose socket is closed when a response exceeds its deadline.

    `direct` ignores the proxies of the environment.
    """

    def __init__(self, direct: bool = False) -> None:
        super().__init__()
        self.trust_env = not direct
        self.socket: socket.socket | None = None
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(self))

    @contextlib.contextmanager
    def open_response(
        self, method: str, url: str, timeouts: Timeouts, **options: Any
    ) -> Iterator[requests.Response]:
        """Yield a response of any status; its body is read inside the `with`, before the deadline.

        `options` are those of requests. A POST that is redirected stays a POST. Redirects from
        https to other schemes, or to schemes other than HTTP, are not followed: the redirect
        itself is then yielded (see `describe_redirect`). Raises NoAnswerError, also for errors
        while the body is read.
        """
        with _deadline(self, timeouts.whole) as late:
            try:
                with self._send(method, url, (timeouts.connect, timeouts.read), options) as answer:
                    yield answer
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                raise (late or [NoAnswerError(_innermost(error))])[0] from error
            if late:  # the body ended because its socket was closed
                raise late[0]

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None: requests would parse the target even of redirects that are not followed."""

    def _send(
        self, method: str, url: str, timeout: tuple[float, float], options: dict[str, Any]
    ) -> requests.Response:
        follow = options.pop("allow_redirects", True)
        for _ in range(HOPS + 1):
            # requests itself would follow redirects from https to http
            answer = self.request(
                method, url, stream=True, timeout=timeout, allow_redirects=False, **options
            )
            target = redirect(answer) if follow else None
            if target is None or describe_redirect(answer):
                return answer
            answer.close()
            if urlsplit(target).netloc != urlsplit(url).netloc:
                # credentials are only for the host they were given for
                options.pop("auth", None)
                headers = dict(options.get("headers") or {})
                options["headers"] = {k: v for k, v in headers.items() if k.lower() not in SECRET}
            url = target
        raise requests.TooManyRedirects(f"redirected more than {HOPS} times")


def redirect(answer: requests.Response) -> str | None:
    """Return the absolute URL that a response redirects to, or None."""
    if not answer.is_redirect:
        return None
    # requests decodes headers as Latin-1, but URLs in them are UTF-8
    target = answer.headers["Location"].encode("latin1", "replace").decode("utf-8", "replace")
    with contextlib.suppress(ValueError):  # an invalid URL is returned unchanged
        return urljoin(answer.url, target)
    return str(target)


def describe_redirect(answer: requests.Response) -> str:
    """Describe a redirect that was refused; return "" for all other responses."""
    target = redirect(answer)
    if target is None:
        return ""
    here, there = urlsplit(answer.url).scheme, ""
    with contextlib.suppress(ValueError):
        there = urlsplit(target).scheme
    if there in ONWARDS[here]:
        return ""
    return (
        f"redirected from {here} to {target}; only {' or '.join(sorted(ONWARDS[here]))} is followed"
    )


class _Adapter(HTTPAdapter):
    """Stores each socket that it opens in the `Session`, which can then close it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools()

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = self._pools()
        return manager

    def _pools(self) -> dict[str, Any]:
        def watched(pool: Any) -> type:
            def connect(connection: Any) -> None:
                pool.ConnectionCls.connect(connection)
                self.session.socket = connection.sock

            connection_class = type("Connection", (pool.ConnectionCls,), {"connect": connect})
            return type(pool.__name__, (pool,), {"ConnectionCls": connection_class})

        return {
            "http": watched(urllib3.HTTPConnectionPool),
            "https": watched(urllib3.HTTPSConnectionPool),
        }


@contextlib.contextmanager
def _deadline(session: Session, seconds: float) -> Iterator[list[NoAnswerError]]:
    """Close the socket when the deadline for a response has passed, however slow its bytes, and add
    the error to the list that is yielded."""
    errors: list[NoAnswerError] = []

    def end() -> None:
        errors.append(NoAnswerError(TimeoutError(f"no whole answer within {seconds:g} s")))
        if session.socket is not None:
            with contextlib.suppress(OSError):  # closed in the same moment
                # not SSLSocket.shutdown, after which the reader would receive plain text
                socket.socket.shutdown(session.socket, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    if seconds:
        timer.start()
    try:
        yield errors
    finally:
        timer.cancel()


def whole_body(answer: requests.Response, most: int) -> bytes:
    """Read the body of an open response, gunzip it and check it against its announced length.

    A truncated stream, or one with more than `most` bytes, compressed or not, raises an error that
    the session turns into NoAnswerError; no more than that is read or decompressed.
    """
    packing = answer.headers.get("Content-Encoding", "").strip().lower()
    if packing not in ("", "identity", "gzip", "x-gzip"):
        raise requests.exceptions.ContentDecodingError(
            f"compressed as {packing}, requested was gzip"
        )
    is_packed = packing.endswith("gzip")
    unzip = zlib.decompressobj(wbits=31)
    body, read, trouble = bytearray(), 0, ""
    try:
        for block in answer.raw.stream(BLOCK, decode_content=False):
            read += len(block)
            body += unzip.decompress(block, most + 1 - len(body)) if is_packed else block
            if len(body) > most or read > most + BLOCK:  # gzip can make small bodies larger
                came = "the gzip stream unpacks to" if is_packed else "the body has"
                trouble = f"{came} more than {most:,} bytes"
                break
        else:
            if is_packed and not unzip.eof:
                trouble = "the gzip stream ends in the middle"
    except zlib.error as error:
        trouble = str(error)
    if trouble:
        raise requests.exceptions.ContentDecodingError(trouble)
    return bytes(body)


def _innermost(error: BaseException) -> BaseException:
    """Return the innermost error that requests and urllib3 have wrapped, or `error` itself."""
    inside = [error.__cause__, getattr(error, "reason", None), *error.args]
    inner = next((e for e in inside if isinstance(e, BaseException) and e is not error), None)
    return error if inner is None else _innermost(inner)


def retry_after(header: str | None, status: int, now: float) -> float | None:
    """Return the Retry-After seconds from a number or an HTTP date (`now` in seconds UTC).

    Invalid headers and negative numbers are ignored; the result is at most ten years.
    Without a valid header it is one minute for status 429, else None.
    """
    header = (header or "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", header):
        return min(float(header), FOREVER)
    with contextlib.suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(header)
        until = date if date.tzinfo else date.replace(tzinfo=datetime.UTC)
        return min(max(until.timestamp() - now, 0.0), FOREVER)
    return UNNAMED_WAIT if status == 429 else None


def backoff(attempt: int, waits: random.Random) -> float:
    """Seconds after attempt `attempt` (from 0): full jitter below min(120, 2 * 2^attempt)."""
    return waits.uniform(0.0, min(120.0, 2.0 * 2.0**attempt))


def retried(
    once: Callable[[], T],
    attempts: int,
    *,
    wait: Callable[[int, Any], float],
    sleep: Callable[[float], None],
    before: Callable[[int, Any, float], None],
) -> T:
    """Call `once` up to `attempts` times and return its result; raise the error of the last call.

    After a PassingError `before(number, error, seconds)` is called (numbers from 0), and then
    `sleep` with the seconds that `wait(number, error)` returned.
    """
    # imported late: the engines import this module for the API errors, without tenacity installed
    from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

    def last(state: RetryCallState) -> tuple[int, BaseException | None]:
        assert state.outcome is not None
        return state.attempt_number - 1, state.outcome.exception()

    return Retrying(
        stop=stop_after_attempt(attempts),
        retry=retry_if_exception_type(PassingError),
        wait=lambda state: wait(*last(state)),
        before_sleep=lambda state: before(*last(state), state.upcoming_sleep),
        sleep=sleep,
        reraise=True,
    )(once)
