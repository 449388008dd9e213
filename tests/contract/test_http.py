"""The one HTTP stack against sockets that misbehave below what a server of HTTP would do."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from kgprobe.http import Line, NoAnswerError, PassingError, Patience, retried, whole_body

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
QUICK = Patience(connect=1, read=0.5, whole=0.4)


@contextlib.contextmanager
def saying(pieces: list[bytes], pause: float = 0.0, times: int = 1) -> Iterator[str]:
    """The address of a server that sends `pieces` with pauses between them, then closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(times):
                with contextlib.suppress(OSError):  # the client has gone
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1 << 16)
                        for piece in pieces:
                            connection.sendall(piece)
                            time.sleep(pause)
                        # what is left unread would make the end a reset
                        connection.shutdown(socket.SHUT_WR)
                        while connection.recv(1 << 16):
                            pass

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def got(url: str, patience: Patience = QUICK, method: str = "GET") -> bytes:
    """The whole body of an answer."""
    with Line() as line, line.opened(method, url, patience, data=b"q") as answer:
        return whole_body(answer, 10)


@pytest.mark.parametrize("part", ["headers", "body"])
def test_the_deadline_is_of_the_whole_answer_however_its_bytes_drip(part):
    slow = b"X-Slow: " + b"x" * 200 if part == "headers" else b"\r\n1234"
    pieces = [HEAD, *(slow[i : i + 1] for i in range(len(slow)))]
    start = time.monotonic()
    told = pytest.raises(NoAnswerError, match=r"no whole answer within 0\.4 s")
    with saying(pieces, pause=0.1) as url, told as caught:
        got(url)
    assert isinstance(caught.value.reason, TimeoutError)
    assert time.monotonic() - start < 5


def test_what_breaks_is_told_by_its_innermost_error():
    with saying([HEAD + b"\r\n1234"]) as url:
        assert got(url) == b"1234"
    with saying([HEAD + b"\r\n12"]) as url, pytest.raises(NoAnswerError, match="IncompleteRead"):
        got(url)
    with pytest.raises(NoAnswerError) as caught:
        got("http://127.0.0.1:9/")
    assert isinstance(caught.value.reason, ConnectionRefusedError)


def test_an_error_of_the_reader_is_not_one_of_the_line():
    disk = pytest.raises(OSError, match="disk is full")
    with saying([HEAD + b"\r\n1234"]) as url, disk, Line() as line, line.opened("GET", url, QUICK):
        raise OSError("disk is full")


def test_redirects_without_end_are_told():
    again = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    told = pytest.raises(NoAnswerError, match="TooManyRedirects")
    with saying([again], times=20) as url, told:
        got(url, Patience(1, 1), "POST")


def test_only_what_passes_is_tried_again_and_the_last_error_is_told():
    tried, naps, told = [], [], []

    def once() -> str:
        tried.append(len(tried))
        if len(tried) < 3:
            raise PassingError(f"try {len(tried)}", asked=float(len(tried)))
        return "there"

    def asked(attempts: int) -> str:
        return retried(
            once, attempts, wait=lambda n, e: 10.0 * n + e.asked, sleep=naps.append,
            before=lambda *said: told.append((said[0], str(said[1]), said[2])),
        )  # fmt: skip

    assert asked(3) == "there"
    assert naps == [1.0, 12.0]
    assert told == [(0, "try 1", 1.0), (1, "try 2", 12.0)]
    tried.clear()
    with pytest.raises(PassingError, match="try 2"):
        asked(2)
    with pytest.raises(ZeroDivisionError):
        retried(lambda: 1 // 0, 5, wait=lambda *_: 0, sleep=naps.append, before=lambda *_: None)
    assert naps == [1.0, 12.0, 1.0]
