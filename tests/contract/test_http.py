"""The HTTP client against raw sockets with faults below the HTTP level."""

import contextlib
import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from kgprobe.http import (
    ContactError,
    NoAnswerError,
    PassingError,
    Session,
    Timeouts,
    describe_redirect,
    retried,
    retry_after,
    user_agent,
    whole_body,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
QUICK = Timeouts(connect=1, read=0.5, whole=0.4)


@contextlib.contextmanager
def saying(
    pieces: list[bytes],
    pause: float = 0.0,
    times: int = 1,
    context: ssl.SSLContext | None = None,
    heard: list[bytes] | None = None,
) -> Iterator[str]:
    """Yield the address of a server that sends `pieces` with pauses between them, then closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(times):
                with contextlib.suppress(OSError):  # the client has gone
                    connection, _ = server.accept()
                    if context:
                        connection = context.wrap_socket(connection, server_side=True)
                    with connection:
                        asked = connection.recv(1 << 16)
                        if heard is not None:
                            heard.append(asked)
                        for piece in pieces:
                            connection.sendall(piece)
                            time.sleep(pause)
                        # unread data would turn the close into a reset
                        connection.shutdown(socket.SHUT_WR)
                        while connection.recv(1 << 16):
                            pass

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def got(url: str, timeouts: Timeouts = QUICK, method: str = "GET") -> bytes:
    """Return the whole body of an answer."""
    with Session() as session, session.open_response(method, url, timeouts, data=b"q") as answer:
        return whole_body(answer, 10)


@pytest.mark.timing
@pytest.mark.parametrize("part", ["headers", "body"])
def test_the_deadline_applies_to_the_whole_slow_answer(part):
    slow = b"X-Slow: " + b"x" * 200 if part == "headers" else b"\r\n1234"
    pieces = [HEAD, *(slow[i : i + 1] for i in range(len(slow)))]
    start = time.monotonic()
    raises = pytest.raises(NoAnswerError, match=r"no whole answer within 0\.4 s")
    with saying(pieces, pause=0.1) as url, raises as caught:
        got(url)
    assert isinstance(caught.value.reason, TimeoutError)
    assert time.monotonic() - start < 5


def test_failures_are_reported_with_the_innermost_error():
    with saying([HEAD + b"\r\n1234"]) as url:
        assert got(url) == b"1234"
    with saying([HEAD + b"\r\n12"]) as url, pytest.raises(NoAnswerError, match="IncompleteRead"):
        got(url)
    with pytest.raises(NoAnswerError) as caught:
        got("http://127.0.0.1:9/")
    assert isinstance(caught.value.reason, ConnectionRefusedError)


def test_an_error_of_the_reader_is_no_connection_error():
    disk = pytest.raises(OSError, match="disk is full")
    with (
        saying([HEAD + b"\r\n1234"]) as url,
        disk,
        Session() as session,
        session.open_response("GET", url, QUICK),
    ):
        raise OSError("disk is full")


def test_endless_redirects_are_reported():
    again = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    raises = pytest.raises(NoAnswerError, match="TooManyRedirects")
    with saying([again], times=20) as url, raises:
        got(url, Timeouts(1, 1), "POST")


def test_only_transient_errors_are_retried_and_the_last_is_reported():
    tried, naps, reported = [], [], []

    def once() -> str:
        tried.append(len(tried))
        if len(tried) < 3:
            raise PassingError(f"try {len(tried)}", wait=float(len(tried)))
        return "there"

    def asked(attempts: int) -> str:
        return retried(
            once, attempts, wait=lambda n, e: 10.0 * n + e.wait, sleep=naps.append,
            before=lambda *said: reported.append((said[0], str(said[1]), said[2])),
        )  # fmt: skip

    assert asked(3) == "there"
    assert naps == [1.0, 12.0]
    assert reported == [(0, "try 1", 1.0), (1, "try 2", 12.0)]
    tried.clear()
    with pytest.raises(PassingError, match="try 2"):
        asked(2)
    with pytest.raises(ZeroDivisionError):
        retried(lambda: 1 // 0, 5, wait=lambda *_: 0, sleep=naps.append, before=lambda *_: None)
    assert naps == [1.0, 12.0, 1.0]


def sent_on(target: str) -> bytes:
    """Return a redirect to another address."""
    return f"HTTP/1.1 307 On\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()


@contextlib.contextmanager
def secure(pieces: list[bytes], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (address, CA bundle) of `saying` behind TLS."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with saying(pieces, context=context) as url:
        yield url.replace("http:", "https:"), str(bundle)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_redirect_leads_from_https_to_http(tmp_path, method):
    """requests alone follows a GET from https to http."""
    with (
        saying([HEAD + b"\r\nopen"]) as plain,
        secure([sent_on(plain)], tmp_path) as (url, bundle),
        Session() as session,
        session.open_response(method, url, QUICK, verify=bundle) as answer,
    ):
        assert answer.status_code == 307
        assert (
            describe_redirect(answer) == f"redirected from https to {plain}; only https is followed"
        )
    with (
        secure([HEAD + b"\r\nsafe"], tmp_path) as (url, bundle),
        saying([sent_on(url)]) as plain,
        Session() as session,
        session.open_response(method, plain, QUICK, verify=bundle) as answer,
    ):
        assert whole_body(answer, 10) == b"safe", "into encryption it is followed"


def body_of(pieces: list[bytes], most: int) -> bytes:
    with (
        saying(pieces) as url,
        Session() as session,
        session.open_response("GET", url, QUICK) as answer,
    ):
        return whole_body(answer, most)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_its_size_limit_is_refused(packed, chunked):
    """With and without a length, compressed and not; the rest is not even read."""
    plain = bytes(range(256)) * 1000
    body = gzip.compress(plain) if packed else plain
    head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Encoding: gzip\r\n" if packed else b"")
    if chunked:
        head += b"Transfer-Encoding: chunked\r\n\r\n"
        body = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    else:
        head += f"Content-Length: {len(body)}\r\n\r\n".encode()
    assert body_of([head + body], len(plain)) == plain
    with pytest.raises(NoAnswerError, match=f"more than {len(plain) - 1:,} bytes"):
        body_of([head + body], len(plain) - 1)


def test_an_unrequested_compression_is_reported():
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: 4\r\n\r\n"
    with pytest.raises(NoAnswerError, match="compressed as zstd, requested was gzip"):
        body_of([head + b"\x28\xb5\x2f\xfd"], 100)


def test_an_endless_body_is_aborted():
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    with pytest.raises(NoAnswerError, match="the body has more than 100,000 bytes"):
        body_of([head, *[b"x" * 90_000] * 3], 100_000)


def test_a_key_is_sent_only_to_its_host():
    heard: list[bytes] = []
    with (
        saying([HEAD + b"\r\nhere"], heard=heard) as other,
        saying([sent_on(other)], heard=heard) as url,
        Session() as session,
        session.open_response(
            "GET", url, QUICK, headers={"Authorization": "Bearer key", "X-Own": "stays"}
        ) as answer,
    ):
        assert whole_body(answer, 10) == b"here"
    first, second = heard
    assert b"Bearer key" in first
    assert b"Bearer key" not in second
    assert b"X-Own: stays" in second


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("17", 17), ("1.5", 1.5), ("0", 0), ("-3", None), ("nan", None), ("inf", None),
        ("1e400", None), ("9" * 400, 315_360_000), ("soon", None), ("", None), (None, None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 315_360_000), ("Mon, 99 Foo 2026 00:00:00 GMT", None),
        ("Thu, 01 Jan 1970 00:01:30 GMT", 0), ("Mon, 01 Jan 0001 00:00:00 -0000", 0),
        ("Sun, 09 Sep 2001 01:48:10 GMT", 90),
    ],
)  # fmt: skip
def test_only_valid_waits_are_parsed(said, seconds):
    assert retry_after(said, 503, 1e9) == seconds
    assert retry_after(said, 429, 1e9) == (60 if seconds is None else seconds)


def test_a_date_without_a_zone_is_utc(monkeypatch):
    """As asctime writes it, which is one of the three forms of HTTP (RFC 9110, 5.6.7)."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert retry_after("Sun Sep  9 01:48:10 2001", 503, 1e9) == 90
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_public_service_is_not_asked_without_a_contact(monkeypatch):
    monkeypatch.delenv("KGPROBE_CONTACT", raising=False)
    with pytest.raises(ContactError, match=r"x\.org is a public service and asks for a contact"):
        user_agent("x.org", "")
    assert "me@example.org" in user_agent("x.org", "me@example.org")
    assert user_agent("x.org", "", is_local=True).startswith("kgprobe/")
