"""The SPARQL client: requests, stored snapshots, and polite waits."""

import gzip
import http.server
import json
import logging
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import tomllib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgprobe.http import ContactError, backoff
from kgprobe.settings.sources import SparqlSource as Source
from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql import endpoint as module
from kgprobe.sources.sparql.endpoint import (
    Clock,
    Endpoint,
    Policy,
    RateLimiter,
    ask,
    open_source,
    read_endpoints,
)
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.snapshots import Snapshot, snapshot_name
from tests.contract.conftest import RESOURCES, ROWS, THINGS, FakeClock
from tests.contract.fault_server import Faults, FaultServer

CONTACT = "test@example.org"
URLS = tomllib.loads((RESOURCES.parent / "pyproject.toml").read_text())["project"]["urls"]
PLACE = "local, query q"
LOCAL = Policy(page_size=1000)
REQUESTS = 13  #: number of requests of a pull without faults
ANSWER = b'{"head":{"vars":["s"]},"results":{"bindings":[]}}'


class Recorder(http.server.ThreadingHTTPServer):
    """Server that records requests and replies with `answer`: status, headers, body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Record)
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.reply: dict[str, tuple[int, dict[str, str], bytes]] = {}
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        good = (200, {"Content-Type": "application/sparql-results+json"}, ANSWER)
        return self.reply.get(path, good)

    def url(self, path: str = "/sparql") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Record(http.server.BaseHTTPRequestHandler):
    server: Recorder

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        status, headers, answer = self.server.answer(self.path, body)
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(answer))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST  # noqa: N815


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        yield server


def things(url: str, folder: Path, policy: Policy = LOCAL, **more: Any) -> Snapshot:
    """Pull the 10,000 things: a count and twelve pages of about 900."""
    return pull(THINGS, Endpoint("local", url, policy), folder, contact=CONTACT, **more)


def form(body: bytes) -> dict[str, list[str]]:
    return urllib.parse.parse_qs(body.decode())


def test_a_request_is_a_polite_post(recorder):
    policy = Policy(server_timeout_ms=60000)
    agent = Endpoint("dbpedia", recorder.url(), policy).agent(CONTACT)
    # words of updates in a literal must not turn the query into one
    text = 'SELECT ?s { ?s ?p "INSERT DATA, load, ask & add + ö" }'
    answer = ask(Endpoint("dbpedia", recorder.url(), policy), text, agent, PLACE)
    assert answer.status == 200
    assert answer.body == ANSWER
    method, path, headers, body = recorder.requests[0]
    assert (method, path) == ("POST", "/sparql")
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert headers["Accept"] == "application/sparql-results+json"
    assert headers["Accept-Encoding"] == "gzip"
    assert headers["User-Agent"].startswith("kgprobe/")
    assert CONTACT in headers["User-Agent"]
    assert "SPARQLWrapper/" in headers["User-Agent"]
    assert URLS["Repository"] in headers["User-Agent"]
    assert form(body) == {"query": [text], "timeout": ["60000"]}


def test_gzip_is_undone_and_a_stream_that_is_cut_or_too_large_is_trouble(recorder, monkeypatch):
    monkeypatch.setattr(module, "UNPACKED", 1000 * len(ANSWER))
    packed = gzip.compress(ANSWER * 1000)
    kind = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    bodies = {"/whole": packed, "/cut": packed[:-9], "/bomb": gzip.compress(ANSWER * 1000 + b" ")}
    recorder.reply = {path: (200, kind, body) for path, body in bodies.items()}
    whole, cut, bomb = (Endpoint("local", recorder.url(path)) for path in bodies)
    assert ask(whole, "SELECT ?s {}", "a", PLACE).body == ANSWER * 1000
    with pytest.raises(answers.ServerTrouble, match="ends in the middle"):
        ask(cut, "SELECT ?s {}", "a", PLACE)
    with pytest.raises(answers.ServerTrouble, match="unpacks to more than"):
        ask(bomb, "SELECT ?s {}", "a", PLACE)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_keeps_the_query(recorder, status):
    recorder.reply = {"/old": (status, {"Location": "/new"}, b"")}
    text = "SELECT ?s { ?s ?p ?o }"
    answer = ask(Endpoint("local", recorder.url("/old")), text, "agent/1", PLACE)
    assert answer.url.endswith("/new")
    method, path, headers, body = recorder.requests[1]
    assert (method, path) == ("POST", "/new")
    assert form(body)["query"] == [text]
    assert headers["User-Agent"] == "agent/1"


def test_a_missing_endpoint_is_reported(tmp_path):
    gone = Endpoint("local", "http://127.0.0.1:9/query", Policy(attempts=2, connect=1))
    clock = FakeClock()
    with pytest.raises(answers.ServerTrouble, match="is the server up") as caught:
        pull(THINGS, gone, tmp_path / "made" / "s", clock=Clock(clock.now, clock.sleep))
    assert "127.0.0.1:9" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 10


def test_a_public_service_is_not_queried_without_a_contact(faulty, tmp_path, monkeypatch):
    monkeypatch.delenv("KGPROBE_CONTACT", raising=False)
    live = Endpoint("wdqs", faulty.url)
    with pytest.raises(ContactError, match="KGPROBE_CONTACT"):
        pull(THINGS, live, tmp_path / "made" / "s")
    assert not faulty.seen
    assert not list((tmp_path / "made").rglob("*.gz"))
    for wrong in (" \n", "a@b.org\nX: y", "\u0141ukasz <l@example.org>"):
        monkeypatch.setenv("KGPROBE_CONTACT", wrong)
        with pytest.raises(ContactError, match=r"an email address or a web page|plain email"):
            live.agent()
        assert wrong.strip() not in Endpoint("local", "").agent() or not wrong.strip()
    monkeypatch.setenv("KGPROBE_CONTACT", "https://example.org/me\n")
    assert "https://example.org/me" in live.agent(CONTACT)
    monkeypatch.setenv("KGPROBE_CONTACT", " ")
    assert f"; {CONTACT})" in live.agent(CONTACT)


def test_the_presets_keep_the_published_limits():
    found = read_endpoints(RESOURCES / "endpoints.tsv")
    assert set(found) == {"wdqs", "dbpedia", "qlever"}
    wdqs, dbpedia = found["wdqs"].policy, found["dbpedia"].policy
    assert (wdqs.connections, wdqs.interval) == (1, 1.0)
    # DBpedia's Virtuoso returns 10,000 rows at most
    assert max(dbpedia.page_size, dbpedia.listing) < 10_000
    assert all(e.policy.page_size <= 5000 for e in found.values())
    assert all(e.policy.read > 60 and e.url.startswith("https://") for e in found.values())


def test_a_bad_row_of_endpoints_is_reported(tmp_path):
    table = tmp_path / "endpoints.tsv"
    for text, message in (
        ("id\turl\tattempts\nx\thttp://x\tmany\n", "endpoint x: column 'attempts' is 'many'"),
        ("id\turl\ttempo\nx\thttp://x\t1\n", r"unknown columns \['tempo'\]"),
        ("id\turl\nx\n", "1 cells, expected 2"),
        ("id\tattempts\nx\t2\n", "endpoint x: no url"),
        ("id\turl\tconnections\nx\thttp://x\t0\n", "endpoint x: column 'connections' is below"),
    ):
        table.write_text(text)
        with pytest.raises(ValueError, match=rf"endpoints\.tsv.*{message}"):
            read_endpoints(table)


def test_a_snapshot_stores_request_and_answer(faulty, tmp_path):
    faulty.expect(Faults())
    first = things(faulty.url, tmp_path / "a" / "made" / "2026-11")
    meta = first.meta
    assert first.folder == tmp_path / "a" / "made" / "2026-11" / "things"
    assert meta["rows"] == meta["count_before"] == ROWS
    assert meta["snapshot"] == "2026-11"
    assert meta["source"] == "made"
    assert len(meta["pages"]) == REQUESTS - 1
    assert all(800 < page["rows"] <= 1000 for page in meta["pages"][:-1])
    assert all(page["status"] == 200 and page["url"] == faulty.url for page in meta["pages"])
    assert all(page["headers"]["content-type"] for page in meta["pages"])
    assert (first.folder / "query.rq").read_text() == faulty.seen[1].text
    second = things(faulty.url, tmp_path / "b" / "made" / "2026-11")
    for name in ("query.rq", "page-00001.json.gz", "page-00010.json.gz", "result.parquet"):
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes()


def test_a_complete_snapshot_is_final(faulty, tmp_path):
    faulty.expect(Faults())
    snapshot = things(faulty.url, tmp_path / "made" / "s")
    asked = len(faulty.seen)
    times = {p: p.stat().st_mtime_ns for p in snapshot.folder.iterdir()}
    assert things(faulty.url, tmp_path / "made" / "s").frame().equals(snapshot.frame())
    assert len(faulty.seen) == asked, "no request for what is there"
    assert {p: p.stat().st_mtime_ns for p in snapshot.folder.iterdir()} == times
    changed = tmp_path / "queries" / "made" / "things.rq"
    changed.parent.mkdir(parents=True)
    changed.write_text(THINGS.read_text().replace("rdfs:label ?label .", "rdfs:label ?label, ?x ."))
    with pytest.raises(answers.SnapshotError, match="name another snapshot") as caught:
        pull(changed, Endpoint("local", faulty.url), tmp_path / "made" / "s")
    assert snapshot.meta["query_sha256"] in str(caught.value)
    with pytest.raises(answers.SnapshotError, match="endpoint"):
        pull(THINGS, Endpoint("qlever", faulty.url), tmp_path / "made" / "s", contact=CONTACT)


def test_comments_and_line_ends_are_not_another_query(faulty, tmp_path):
    faulty.expect(Faults())
    things(faulty.url, tmp_path / "made" / "s")
    same = tmp_path / "queries" / "made" / "things.rq"
    same.parent.mkdir(parents=True)
    same.write_bytes(b"# another comment\r\n" + THINGS.read_bytes().replace(b"\n", b"\r\n"))
    asked = len(faulty.seen)
    pull(same, Endpoint("local", faulty.url), tmp_path / "made" / "s")
    assert len(faulty.seen) == asked


def interrupted(server: FaultServer, folder: Path) -> Path:
    """Return a pull that ended after three pages."""
    server.expect(Faults({5: "status 403"}))
    with pytest.raises(answers.EndpointRefused):
        things(server.url, folder)
    return folder / "things"


def test_a_damaged_page_is_requested_again(faulty, tmp_path):
    folder = interrupted(faulty, tmp_path / "made" / "s")
    page = folder / "page-00002.json.gz"
    page.write_bytes(page.read_bytes()[:-20])
    things(faulty.url, folder.parent)
    again = [seen.part for seen in faulty.seen[5:] if not seen.is_count]
    assert again[0] == faulty.seen[2].part


def test_a_half_written_journal_line_does_not_count(faulty, tmp_path):
    folder = interrupted(faulty, tmp_path / "made" / "s")
    journal = folder / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) >= 4
    journal.write_text("".join(lines[:-1]) + lines[-1][:40])
    snapshot = things(faulty.url, folder.parent)
    assert snapshot.meta["rows"] == ROWS
    assert snapshot.meta["started"]


def test_a_journal_of_an_earlier_version_is_resumed(faulty, tmp_path):
    """Its pages have a field that no longer exists."""
    folder = interrupted(faulty, tmp_path / "made" / "s")
    journal = folder / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    pages = [line for line in lines if "number" in line]
    assert pages
    for line in pages:
        line["cache_key"] = "0" * 64
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = [seen.part for seen in faulty.seen if not seen.is_count]
    before = len(faulty.seen)
    assert things(faulty.url, folder.parent).meta["rows"] == ROWS
    again = [seen.part for seen in faulty.seen[before:] if not seen.is_count]
    assert again
    assert not {*asked[: len(pages)]} & {*again}


def test_a_full_disk_is_reported_and_pages_are_kept(faulty, tmp_path):
    """A file size limit simulates the disk: pages exceed it when their size doubles."""
    faulty.expect(Faults({2: "cap", 3: "cap", 4: "cap"}))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, limit[1]))
    try:
        with pytest.raises(OSError, match="bytes were to be written") as caught:
            things(faulty.url, tmp_path / "made" / "s", Policy(attempts=6, page_size=1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "page-" in str(caught.value.filename)
    kept = list((tmp_path / "made" / "s" / "things").glob("page-*.json.gz"))
    assert len(kept) >= 5
    before = len(faulty.seen)
    snapshot = things(faulty.url, tmp_path / "made" / "s")
    assert snapshot.meta["rows"] == ROWS
    parts = [seen.part for seen in faulty.seen[before:] if not seen.is_count]
    assert len(snapshot.meta["pages"]) == len(kept) + len(parts), "no page that was kept"


def test_more_rows_than_paging_can_bring_are_refused_by_the_count(faulty, tmp_path):
    faulty.expect(Faults())
    with pytest.raises(answers.TooManyRows, match="a dump"):
        things(faulty.url, tmp_path / "a" / "s", Policy(most_rows=9_999))
    assert len(faulty.seen) == 1


CLIENT = """
import sys
from kgprobe.sources.sparql.endpoint import Endpoint, Policy, read_endpoints
from kgprobe.sources.sparql.pull import pull
policy = Policy(connections=int(sys.argv[4]), interval=float(sys.argv[5]), page_size=1000)
pull(sys.argv[1], Endpoint("local", sys.argv[2], policy), sys.argv[3], contact="t@example.org")
"""


def client(server: FaultServer, folder: Path, connections: int = 4, interval: float = 0.0):
    """Start a pull in a separate process."""
    words = [str(THINGS), server.url, str(folder), str(connections), str(interval)]
    return subprocess.Popen([sys.executable, "-c", CLIENT, *words], stderr=subprocess.PIPE)


@pytest.mark.timing
def test_a_killed_client_resumes(faulty, tmp_path):
    """SIGKILL between pages and within them; at most one page per kill is requested twice."""
    faulty.expect(Faults(dict.fromkeys(range(1, 60), "late")))
    faulty.slow = 0.12
    folder = tmp_path / "made" / "s"
    kills = 0
    for wanted in (2, 4, 7, 9, 12):
        process = client(faulty, folder)
        while len(faulty.seen) < wanted and process.poll() is None:
            time.sleep(0.005)
        time.sleep(0.03 * kills)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        kills += 1
        assert not (folder / "things" / "meta.json").exists()
    last = client(faulty, folder)
    assert last.wait(60) == 0, last.stderr.read()
    meta = json.loads((folder / "things" / "meta.json").read_text())
    assert meta["rows"] == ROWS
    pages = [seen.part for seen in faulty.seen if not seen.is_count]
    assert len(set(pages)) == REQUESTS - 1
    assert len(pages) <= REQUESTS - 1 + kills
    faulty.expect(Faults())
    clean = things(faulty.url, tmp_path / "b" / "made" / "s")
    assert meta["rows_sha256"] == clean.meta["rows_sha256"]
    assert not list((folder / "things").glob("*.part"))


@pytest.mark.timing
def test_processes_share_connections_and_starts(things_table, tmp_path):
    """Real-time test: three clients of one data folder, one connection, 50 ms between starts."""
    with FaultServer(things_table, time.time) as server:
        processes = [client(server, tmp_path / "made" / f"s{n}", 1, 0.05) for n in range(3)]
        for process in processes:
            assert process.wait(120) == 0, process.stderr.read()
        assert len(server.seen) == 3 * REQUESTS
        assert max(seen.running for seen in server.seen) == 1
        starts = sorted(seen.at for seen in server.seen)
        # a request arrives a little later than it started, at times by more than the gap; so
        # any two arrivals may be near each other: only all of them together tell. Clients that
        # kept the gap each for itself would need a third of the time.
        assert starts[-1] - starts[0] >= 0.8 * 0.05 * (len(starts) - 1)


def test_two_processes_do_not_pull_the_same_snapshot_twice(things_table, tmp_path):
    with FaultServer(things_table, time.time) as server:
        processes = [client(server, tmp_path / "made" / "s") for _ in range(2)]
        for process in processes:
            assert process.wait(120) == 0, process.stderr.read()
        assert len(server.seen) == REQUESTS


def limiter(folder: Path, clock: FakeClock, **policy: float) -> RateLimiter:
    endpoint = Endpoint("wdqs", "http://x", Policy(**policy))  # type: ignore[arg-type]
    return RateLimiter(endpoint, folder, Clock(clock.now, clock.sleep))


def test_all_clients_wait_for_a_retry_after(tmp_path, clock):
    one, other = limiter(tmp_path, clock), limiter(tmp_path, clock)
    one.hold(7)
    start = clock.now()
    with other.request(PLACE):
        assert clock.now() - start == pytest.approx(7)
    assert other.waits == {"seconds": {"hold": 7.0}, "times": {"hold": 1}}


def test_a_clock_set_back_does_not_block_forever(tmp_path, clock):
    limiter(tmp_path, clock).hold(3000)
    clock.time -= 1_000_000
    start = clock.now()
    with limiter(tmp_path, clock, interval=1).request(PLACE):
        assert clock.now() - start <= 3600


def test_processes_share_the_budget_and_a_pause_empties_the_window(tmp_path, clock):
    one, other = limiter(tmp_path, clock), limiter(tmp_path, clock)
    for number in range(19):
        (one if number % 2 else other).failed()
    start = clock.now()
    with one.request(PLACE):
        assert clock.now() == start
    other.failed()
    with one.request(PLACE):
        assert clock.now() - start == pytest.approx(60)
    assert one.pauses == 1


def test_a_broken_state_file_is_reset(tmp_path, clock):
    (tmp_path / "wdqs.json").write_text("{half")
    with limiter(tmp_path, clock).request(PLACE):
        pass


def test_the_state_file_is_written_when_the_state_changes(tmp_path, clock):
    one, path = limiter(tmp_path, clock), tmp_path / "wdqs.json"
    with one.request(PLACE):
        before = path.stat()
    with one.request(PLACE):
        assert path.stat().st_mtime_ns == before.st_mtime_ns
        assert path.stat().st_ino == before.st_ino
    one.hold(7)
    assert path.stat().st_ino != before.st_ino or path.stat().st_mtime_ns != before.st_mtime_ns


def test_back_off_is_full_jitter_below_its_bounds():
    for attempt, bound in enumerate((2, 4, 8, 16, 32, 64, 120, 120)):
        drawn = [backoff(attempt, random.Random(seed)) for seed in range(200)]
        assert 0 <= min(drawn) < bound * 0.1
        assert bound * 0.9 < max(drawn) <= bound
    assert backoff(3, random.Random(1)) == backoff(3, random.Random(1))


def test_local_snapshots_are_named_by_file_content(tmp_path):
    file = tmp_path / "a.nt"
    file.write_text("x")
    name = snapshot_name("embedded", "embedded", [str(file)])
    assert name.startswith("embedded-")
    assert len(name) == len("embedded-") + 12
    file.write_text("y")
    assert snapshot_name("embedded", "embedded", [str(file)]) != name
    assert snapshot_name("live", "2026-11", []) == "2026-11"


def test_a_changed_query_is_run_again_on_local_files(tmp_path, monkeypatch):
    query = tmp_path / "resources/queries/made/things.rq"
    query.parent.mkdir(parents=True)
    file = tmp_path / "a.nt"
    file.write_text('<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> "a"@en .\n')
    monkeypatch.chdir(tmp_path)
    settings = Source(access="local", endpoint="local", snapshot="mine")
    rows = []
    for text in (THINGS.read_text(), THINGS.read_text().replace("?label .", "?label, ?same .")) * 2:
        query.write_text(text)
        endpoint, folder = open_source("made", settings, [str(file)], tmp_path / "data", "none")
        rows.append((folder, pull(query, endpoint, folder).meta["rows"]))
    assert rows[:2] == rows[2:]
    assert len({folder for folder, _ in rows}) == 2


def test_importing_the_client_is_fast_and_light():
    code = (
        "import sys, kgprobe.sources.sparql.pull, kgprobe.sources.sparql.endpoint; "
        "print({'torch', 'transformers', 'rdflib', 'snakemake', 'pandas'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


CLASSES = RESOURCES / "queries/dbpedia/classes.rq"


def banded(text: str, tmp_path) -> object:
    path = tmp_path / "queries" / "dbpedia" / "classes.rq"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CLASSES.read_text().replace("# band: 750 850", f"# band: {text}"))
    return path


def test_a_live_pull_outside_its_band_warns_and_a_halved_one_fails(
    world_endpoint, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("kgprobe"), "propagate", True)
    live = Endpoint("dbpedia", world_endpoint.url, Policy())
    rows = pull(CLASSES, world_endpoint, tmp_path / "local" / "s").meta["rows"]
    assert rows < 750, "the world is smaller than the band, which binds live pulls alone"
    path = banded(f"{rows + 1} {rows + 9}", tmp_path)
    snapshot = pull(path, live, tmp_path / "a" / "s", contact="t@example.org")
    assert snapshot.meta["access"] == "live"
    assert "an older snapshot" in caplog.text
    path = banded(f"{2 * rows + 2} {3 * rows}", tmp_path)
    with pytest.raises(answers.ImplausibleTable, match=f"{rows} rows"):
        pull(path, live, tmp_path / "b" / "s", contact="t@example.org")
    assert not (tmp_path / "b" / "s" / "classes" / "meta.json").exists()
