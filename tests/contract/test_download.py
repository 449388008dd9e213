"""The downloader against a faulty HTTP server over real sockets."""

import hashlib
import http.server
import io
import random
import threading
import time
import zipfile
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from kgprobe.job import sha256
from kgprobe.sources.dumps import download as module
from kgprobe.sources.dumps.download import Bounds, ChecksumMismatchError, DownloadError, download

BODY = random.Random(0).randbytes(3 << 20)
AGENT = "kgprobe/test (https://example.org; test@example.org)"


class Server(http.server.ThreadingHTTPServer):
    """Server of BODY; `plan` holds one fault per request, later requests succeed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        #: a fault's name, or the whole answer in bytes
        self.plan: list[str | bytes] = []
        self.body, self.etag, self.ranges = BODY, '"one"', True
        self.requests: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        server.requests.append(dict(self.headers))
        fault = server.plan.pop(0) if server.plan else ""
        if isinstance(fault, bytes):
            self.wfile.write(fault)
            self.close_connection = True
            return
        if fault.startswith("status"):
            self.send_response(int(fault.split()[1]))
            if len(fault.split()) > 2:
                self.send_header("Retry-After", fault.split(maxsplit=2)[2])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = 0
        wanted = self.headers.get("Range")
        if wanted and server.ranges and self.headers.get("If-Range") == server.etag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        if start:
            shown = 7 if fault == "wrong range" else start
            self.send_header("Content-Range", f"bytes {shown}-/{len(server.body)}")
        self.send_header("ETag", server.etag)
        body = server.body[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault.startswith("cut"):
            self.wfile.write(body[: int(fault.split()[1])])
            self.close_connection = True
            self.connection.close()
            return
        self.wfile.write(body)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError, ValueError):
            self.close_connection = True


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield running
        running.shutdown()


def get(server: Server, path: Path, **options) -> list[float]:
    """Download and return the waits."""
    waits: list[float] = []
    download(server.url, path, agent=AGENT, sleep=waits.append, **options)
    return waits


def test_a_file_is_downloaded_whole_with_the_project_s_agent(server, tmp_path):
    path = tmp_path / "f"
    assert get(server, path) == []
    assert path.read_bytes() == BODY
    assert server.requests[0]["User-Agent"] == AGENT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f", "f.lock", "f.sha256"]
    assert module.recorded(path) == (server.url, sha256(path))
    get(server, path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("cut", [0, 1, 1 << 20, len(BODY) - 1])
def test_a_broken_transfer_is_resumed(server, tmp_path, cut):
    server.plan = [f"cut {cut}"]
    get(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY
    if cut > module.BLOCK - 1:
        assert server.requests[1]["Range"].startswith("bytes=")


def test_a_changed_file_is_restarted(server, tmp_path, monkeypatch):
    server.plan = [f"cut {1 << 20}"]
    original = module.progress

    def change(**options):  # the file changes on the server while the first answer is cut
        server.body, server.etag = BODY[::-1], '"two"'
        return original(**options)

    monkeypatch.setattr(module, "progress", change)
    get(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY[::-1]


def test_a_server_without_ranges_and_one_with_wrong_ranges(server, tmp_path):
    server.plan, server.ranges = [f"cut {2 << 20}"], False
    get(server, tmp_path / "a")
    server.plan, server.ranges = [f"cut {2 << 20}", "wrong range"], True
    get(server, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == BODY


def test_retry_after_in_seconds_and_as_a_date_is_a_lower_bound(server, tmp_path):
    date = formatdate(time.time() + 90, usegmt=True)
    server.plan = ["status 429 30", f"status 503 {date}", "status 429", "status 502"]
    waits = get(server, tmp_path / "f")
    assert waits[0] >= 30
    assert 85 <= waits[1] <= 125
    assert waits[2] >= 60
    assert len(waits) == 4


SUMS = ["md5", "sha1", "sha256"]


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Send a complete answer without a length, unless a header gives one."""
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


def chunked(body: bytes, etag: str = '"one"', whole: bool = True) -> bytes:
    """Send the same in chunks, as GitHub sends archives; without `whole` the body is cut."""
    end = b"0\r\n\r\n" if whole else b""
    chunks = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    return answer(chunks + end, "Transfer-Encoding: chunked", f"ETag: {etag}")


def zipped() -> bytes:
    """Return a valid archive that does not compress well."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("top/data.bin", BODY)
    return stream.getvalue()


def left(folder: Path) -> list[str]:
    """Return the contents of a folder except locks."""
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".lock")


def refused(server: Server, path: Path, *words: str, error=DownloadError, **options) -> str:
    """Assert that a download fails at once with address, file and this text, storing nothing."""
    before = len(server.requests)
    with pytest.raises(error) as caught:
        get(server, path, **options)
    said = str(caught.value)
    for word in (server.url, str(path), "expected", *words):
        assert word in said, said
    assert len(server.requests) == before + 1
    assert left(path.parent) == []
    return said


@pytest.mark.parametrize("name", SUMS)
def test_checksums_are_checked_and_a_wrong_file_is_removed(server, tmp_path, name):
    right = hashlib.new(name, BODY).hexdigest()
    wrong = "0" * len(right)
    path, words = tmp_path / "f", (f"{name} is {right}, expected {wrong}", "has been removed")
    refused(server, path, *words, error=ChecksumMismatchError, sums={name: wrong})
    get(server, path, sums={name: right.upper(), "sha256": None})
    path.write_bytes(BODY[:-1] + b"x")
    get(server, path, sums={name: right})
    assert path.read_bytes() == BODY, "what was spoilt later is asked for again"


PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Human  Verification</title></head></html>"


@pytest.mark.parametrize("name", ["TREx.zip", "dump.nt.bz2", "dump.json.gz", "d.nt.zst", "d.nt"])
@pytest.mark.parametrize("how", ["length", "chunks", "until the end"])
def test_a_web_page_is_refused_and_not_stored(server, tmp_path, name, how):
    html, kind = "Content-Type: text/html; charset=utf-8", "Content-Type text/html; charset=utf-8"
    whole = {
        "length": answer(PAGE, html, f"Content-Length: {len(PAGE)}"),
        "chunks": chunked(PAGE).replace(b"\r\n\r\n", f"\r\n{html}\r\n\r\n".encode(), 1),
        "until the end": answer(PAGE, html),
    }
    server.plan = [whole[how]]
    path = tmp_path / name
    refused(server, path, "<title>Human Verification</title>", kind, "put the file at")


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (answer(b"", status="404 Not Found"), "status 404 Not Found"),
        (answer(b"", "x-amzn-waf-action: challenge", status="202 Accepted"), "status 202 Accepted"),
        (answer(PAGE, status="202 Accepted"), "Human Verification"),
        (answer(b"", status="204 No Content"), "status 204 No Content, an empty body"),
        (answer(b"", "Content-Length: 0"), "an empty body (Content-Type missing)"),
        (answer(b""), "an empty body"),
        (chunked(b""), "an empty body"),
        (answer(b'{"message": "gone"}', "Content-Type: application/json"), "gone"),
        (answer(b"<Error>AccessDenied</Error>", status="403 Forbidden"), "AccessDenied"),
        (answer(BODY, f"Content-Length: {len(BODY)}"), "status 200, begins with"),
        (
            answer(b"PK\x03\x04 cut", "Content-Length: 8"),
            "8 bytes of a zip archive without its end",
        ),
    ],
)
def test_an_invalid_archive_is_reported_and_not_stored(server, tmp_path, whole, words):
    server.plan = [whole]
    refused(server, tmp_path / "a.zip", words, "a zip archive")


def test_a_stored_file_whose_bytes_have_changed_is_downloaded_again(server, tmp_path):
    """No published sum is known: the one recorded at download shows the damage."""
    path = tmp_path / "f"
    get(server, path)
    path.write_bytes(BODY[:-1] + b"x")
    get(server, path)
    assert path.read_bytes() == BODY
    assert len(server.requests) == 2
    # a file in place of one that could not be downloaded again is not compared with that
    path.write_bytes(BODY[:-1] + b"x")
    server.plan = ["status 404"]
    with pytest.raises(DownloadError):
        get(server, path)
    path.write_bytes(b"put there by hand")
    download(server.url, path, agent=AGENT)
    assert path.read_bytes() == b"put there by hand"


def test_wrong_or_foreign_stored_files_are_downloaded_again(server, tmp_path):
    server.body = zipped()
    path = tmp_path / "a.zip"
    for spoilt in (PAGE, b"", zipped()[:-30]):
        path.write_bytes(spoilt)
        get(server, path)
        assert path.read_bytes() == server.body
    before = len(server.requests)
    get(server, path)
    assert len(server.requests) == before
    download(f"{server.url}?of=2024", path, agent=AGENT)
    assert len(server.requests) == before + 1
    path.with_name("a.zip.sha256").unlink()
    get(server, path)
    assert len(server.requests) == before + 1, "a sound file that was put there by hand is taken"


def test_a_partial_download_with_broken_metadata_is_restarted(server, tmp_path):
    server.plan = [f"cut {1 << 20}", *["status 503"] * 5]
    with pytest.raises(DownloadError, match="run again"):
        get(server, tmp_path / "f")
    (tmp_path / "f.part.json").write_text('{"url": "htt')
    get(server, tmp_path / "f")
    assert "Range" not in server.requests[-1]
    assert (tmp_path / "f").read_bytes() == BODY


@pytest.mark.parametrize(
    ("then", "words"),
    [
        (["status 503"] * 5, "run again to resume"),
        ([answer(PAGE, status="202 Accepted")], "status 202"),
    ],
)
def test_a_stopped_download_keeps_received_bytes(server, tmp_path, then, words):
    server.plan = [f"cut {1 << 20}", *then]
    with pytest.raises(DownloadError, match=words):
        get(server, tmp_path / "f")
    assert (tmp_path / "f.part").stat().st_size == 1 << 20
    assert not (tmp_path / "f").exists()
    get(server, tmp_path / "f")
    assert server.requests[-1]["Range"] == f"bytes={1 << 20}-"
    assert (tmp_path / "f").read_bytes() == BODY


@pytest.mark.parametrize("how", ["chunks", "until the end"])
@pytest.mark.parametrize("etag", ['"one"', 'W/"one"'])
def test_a_truncated_body_of_unknown_length_is_resumed(server, tmp_path, how, etag):
    """A missing end shows in chunks by the last chunk, in an archive by its table of contents."""
    server.body = zipped()
    half = server.body[: 2 << 20]
    server.plan = [
        chunked(half, etag, whole=False) if how == "chunks" else answer(half, f"ETag: {etag}")
    ]
    path = tmp_path / "a.zip"
    assert len(get(server, path)) == 1
    assert path.read_bytes() == server.body
    # a weak validator does not guarantee equal bytes
    assert ("Range" in server.requests[1]) == (not etag.startswith("W"))


def test_a_partial_download_of_another_file_is_restarted(server, tmp_path):
    """The server supports ranges but not If-Range."""
    rest = BODY[1 << 20 :]
    place = f"Content-Range: bytes {1 << 20}-{len(BODY) - 1}/{len(BODY)}"
    length = f"Content-Length: {len(rest)}"
    other = answer(rest, place, length, 'ETag: "two"', status="206 Partial Content")
    longer = other.replace(f"/{len(BODY)}".encode(), b"/9999999").replace(b'"two"', b'"one"')
    for n, part in enumerate((other, longer)):
        server.plan = [f"cut {1 << 20}", part]
        before = len(server.requests)
        get(server, tmp_path / f"{n}")
        assert (tmp_path / f"{n}").read_bytes() == BODY
        asked = ["Range" in request for request in server.requests[before:]]
        assert asked == [False, True, False]


def test_a_range_that_is_shorter_than_requested_is_continued(server, tmp_path):
    start, end = 1 << 20, 2 << 20
    place = f"Content-Range: bytes {start}-{end - 1}/{len(BODY)}"
    length = f"Content-Length: {end - start}"
    part = answer(BODY[start:end], place, length, 'ETag: "one"', status="206 Partial Content")
    server.plan = [f"cut {start}", part]
    get(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY
    assert [request.get("Range") for request in server.requests] == [
        None, f"bytes={start}-", f"bytes={end}-",
    ]  # fmt: skip


def test_more_bytes_than_allowed_are_refused_announced_or_not(server, tmp_path):
    bounds = Bounds(max_bytes=1000)
    words = (f"{len(BODY):,} bytes are announced", "at most 1,000", "raise max_bytes")
    refused(server, tmp_path / "f", *words, bounds=bounds)
    server.plan = [chunked(BODY)]
    refused(server, tmp_path / "f", "more than 1,000 bytes arrived", bounds=bounds)
    get(server, tmp_path / "f", bounds=Bounds(max_bytes=len(BODY)))


@pytest.mark.timing
def test_a_slow_download_ends_at_the_timeout(server, tmp_path):
    class Slow(Handler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.send_header("ETag", '"one"')
            self.end_headers()
            for _ in range(50):
                self.wfile.write(b"x")
                time.sleep(0.05)

    server.RequestHandlerClass = Slow
    start = time.monotonic()
    message = (
        r"bytes arrived within 0\.6 s; expected the whole of .*f\. .*sources\.downloads\.hours"
    )
    with pytest.raises(DownloadError, match=message):
        get(server, tmp_path / "f", bounds=Bounds(seconds=0.6))
    assert time.monotonic() - start < 2
    assert (tmp_path / "f.part").exists()


@pytest.mark.parametrize(("seconds", "is_late"), [(0.5, False), (0.0, True)])
def test_any_time_left_is_used(tmp_path, monkeypatch, seconds, is_late):
    """The clock stands still; the host is asked unless no time is left at all."""
    asked: list[float] = []

    def open_response(self, method, url, timeouts, **_):
        asked.append(timeouts.whole)
        raise DownloadError("asked")

    monkeypatch.setattr(module.time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(module.http.Session, "open_response", open_response)
    transfer = module.Transfer("http://x.org/f", tmp_path / "f", AGENT, Bounds(seconds=seconds))
    with pytest.raises(DownloadError, match="within 0 s" if is_late else "asked"):
        transfer.attempt()
    assert asked == ([] if is_late else [0.5])


@pytest.mark.timing
def test_a_stalled_connection_is_restarted(server, tmp_path):
    class Stalling(Handler):
        def do_GET(self) -> None:
            if len(self.server.requests) == 0:
                self.server.requests.append({})
                time.sleep(0.8)
                return
            super().do_GET()

    server.RequestHandlerClass = Stalling
    assert len(get(server, tmp_path / "f", bounds=Bounds(stall=0.3))) == 1
    assert (tmp_path / "f").read_bytes() == BODY


def test_a_huge_wait_stops_and_states_when_to_retry(server, tmp_path):
    date = formatdate(time.time() + 90_000, usegmt=True)
    for said in ("7200", date, "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"):
        server.plan = [f"status 503 {said}"]
        message = refused(server, tmp_path / "f", "the server asks to wait", "Run again after 20")
    assert "Run again after 2036" in message or int(message.split("after ")[1][:4]) > 2030


def test_redirects_are_followed_only_over_http(server, tmp_path):
    on = answer(b"", f"Location: {server.url}/2", "Content-Length: 0", status="302 Found")
    server.plan = [on]
    get(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY
    for target in ("ftp://example.org/f", "file:///etc/passwd", "javascript:x", "http://[bad"):
        away = answer(b"", f"Location: {target}", "Content-Length: 0", status="302 Found")
        server.plan = [away]
        refused(server, tmp_path / "g" / "f", f"redirected from http to {target}", "http or https")


def test_two_processes_for_one_file_share_one_download(server, tmp_path):
    path = tmp_path / "f"
    threads = [threading.Thread(target=get, args=(server, path)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 1
    assert path.read_bytes() == BODY


def test_a_disk_too_small_is_reported_before_the_transfer(server, tmp_path, monkeypatch):
    class Usage:
        free = 1000

    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: Usage)
    with pytest.raises(DownloadError, match=r"needs 3,303,\d+ bytes, 1,000 are free"):
        get(server, tmp_path / "f")


@pytest.mark.parametrize("status", ["403 Forbidden", "429 Too Many Requests", "200 OK"])
def test_a_refusal_of_the_agent_is_reported_with_the_setting(status, server, tmp_path):
    page = b"<html><body>Please set a user-agent: https://w.wiki/4wJS</body></html>"
    server.plan = [answer(page, status=status)] * 6
    with pytest.raises(
        DownloadError, match="`contact` in the config, or KGPROBE_CONTACT"
    ) as caught:
        get(server, tmp_path / "f.zip")
    assert len(server.requests) == 1
    assert "run again" not in str(caught.value)
