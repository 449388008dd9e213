"""The downloader against a real HTTP server that misbehaves over real sockets."""

import http.server
import random
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from kgprobe.job import sha256
from kgprobe.sources.dumps import download as module
from kgprobe.sources.dumps.download import ChecksumMismatchError, DownloadError, download
from kgprobe.sources.dumps.kinds import recorded

BODY = random.Random(0).randbytes(3 << 20)
AGENT = "kgprobe/test (https://example.org; test@example.org)"


class Server(http.server.ThreadingHTTPServer):
    """Serves BODY; `plan` holds one fault per request, then all goes well."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list[str] = []
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
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


def get(server: Server, path: Path, **options) -> list[float]:
    """Download and return the waits."""
    waits: list[float] = []
    download(server.url, path, agent=AGENT, sleep=waits.append, **options)
    return waits


def test_a_file_arrives_whole_with_our_agent(server, tmp_path):
    path = tmp_path / "f"
    assert get(server, path) == []
    assert path.read_bytes() == BODY
    assert server.requests[0]["User-Agent"] == AGENT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f", "f.lock", "f.sha256"]
    assert recorded(path) == (server.url, sha256(path))
    get(server, path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("cut", [0, 1, 1 << 20, len(BODY) - 1])
def test_a_cut_transfer_goes_on_where_it_stopped(server, tmp_path, cut):
    server.plan = [f"cut {cut}"]
    get(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY
    if cut > module.BLOCK - 1:
        assert server.requests[1]["Range"].startswith("bytes=")


def test_a_changed_file_is_begun_again(server, tmp_path):
    server.plan = [f"cut {1 << 20}"]
    original = module.progress

    def change(**options):  # the file changes on the server while the first answer is cut
        server.body, server.etag = BODY[::-1], '"two"'
        return original(**options)

    module.progress = change
    try:
        get(server, tmp_path / "f")
    finally:
        module.progress = original
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


def test_a_wait_of_hours_stops_the_download(server, tmp_path):
    server.plan = ["status 429 7200"]
    with pytest.raises(DownloadError, match="asks to wait 7200 s"):
        get(server, tmp_path / "f")


def test_a_missing_file_is_not_asked_for_twice(server, tmp_path):
    server.plan = ["status 404"]
    with pytest.raises(DownloadError, match="status 404"):
        get(server, tmp_path / "f")
    assert len(server.requests) == 1


def test_giving_up_keeps_what_arrived_and_a_later_run_completes(server, tmp_path):
    server.plan = [f"cut {1 << 20}"] + ["status 503"] * 5
    with pytest.raises(DownloadError, match="run again to go on"):
        get(server, tmp_path / "f")
    assert (tmp_path / "f.part").stat().st_size >= 1 << 19
    assert not (tmp_path / "f").exists()
    get(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY


def test_a_wrong_checksum_or_size_is_kept_as_bad(server, tmp_path):
    with pytest.raises(ChecksumMismatchError, match=r"Kept as f\.bad"):
        get(server, tmp_path / "f", sha256="0" * 64)
    with pytest.raises(ChecksumMismatchError, match="expected sha256 any, 5 bytes"):
        get(server, tmp_path / "f", size=5)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.bad", "f.lock"]


def test_two_processes_for_one_file_share_one_download(server, tmp_path):
    path = tmp_path / "f"
    threads = [threading.Thread(target=get, args=(server, path)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 1
    assert sha256(path) == sha256(path)
    assert path.read_bytes() == BODY


def test_a_disk_too_small_is_told_before_the_transfer(server, tmp_path, monkeypatch):
    class Usage:
        free = 1000

    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: Usage)
    with pytest.raises(DownloadError, match=r"needs 3,303,\d+ bytes, 1,000 are free"):
        get(server, tmp_path / "f")
