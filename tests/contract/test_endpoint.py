"""The local endpoint: it is there while the body runs, and never afterwards."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import orjson
import psutil
import pytest

from kgprobe.sources.sparql import endpoint as module
from kgprobe.sources.sparql import errors
from kgprobe.sources.sparql.answers import Answer, check_answer
from kgprobe.sources.sparql.endpoint import (
    Endpoint,
    EndpointError,
    files_hash,
    local_endpoint,
    stop_orphans,
)
from kgprobe.sources.sparql.errors import Place
from kgprobe.sources.sparql.transport import ask
from tests.contract.fault_server import fetch

TRIPLES = "".join(
    f'<http://example.org/{n}> <http://www.w3.org/2000/01/rdf-schema#label> "thing {n}"@en .\n'
    for n in range(100)
)
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
OWNER = """
import sys, time
from kgprobe.sources.sparql.endpoint import local_endpoint
with local_endpoint([sys.argv[1]], log=lambda line: print(line, flush=True)):
    time.sleep(60)
"""


@pytest.fixture
def things(tmp_path: Path) -> Path:
    file = tmp_path / "things.nt"
    file.write_text(TRIPLES)
    return file


@pytest.fixture(autouse=True)
def own_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary folders of this test, so that other tests' servers are not in sight."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


def triples(endpoint: Endpoint) -> int:
    found = orjson.loads(fetch(endpoint.url, COUNT))
    return int(found["results"]["bindings"][0]["n"]["value"])


def server_pid(lines: list[str]) -> int:
    return int(next(line for line in lines if "process" in line).split()[-1])


def gone(pid: int) -> bool:
    """Whether a process ends soon."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_it_serves_the_files_and_is_gone_afterwards(things, tmp_path):
    lines: list[str] = []
    with local_endpoint([things], log=lines.append) as endpoint:
        assert endpoint.id == "local"
        assert endpoint.url.startswith("http://127.0.0.1:")
        assert triples(endpoint) == 100
        pid = server_pid(lines)
        assert os.getpgid(pid) == pid, "a process group of its own"
    assert gone(pid)
    assert not list(module.pid_folder().iterdir())
    assert not list((tmp_path / "tmp").glob("kgprobe-store-*"))


def test_it_stops_when_the_body_raises(things):
    lines: list[str] = []
    with pytest.raises(ZeroDivisionError), local_endpoint([things], log=lines.append):
        _ = 1 / 0
    assert gone(server_pid(lines))


def owner(things: Path) -> tuple[subprocess.Popen[str], int]:
    """A process that holds an endpoint open, and its server's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(things)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    lines = [process.stdout.readline(), process.stdout.readline()]
    return process, server_pid(lines)


@pytest.mark.timing
def test_it_stops_when_its_process_is_terminated(things, tmp_path):
    process, pid = owner(things)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM
    assert gone(pid)
    assert not list((tmp_path / "tmp").glob("kgprobe-store-*"))


@pytest.mark.timing
def test_an_orphan_of_a_killed_process_is_stopped_by_the_next_start(things, tmp_path):
    process, pid = owner(things)
    process.kill()
    process.wait(10)
    assert psutil.pid_exists(pid), "nobody stopped it yet"
    lines: list[str] = []
    with local_endpoint([things], log=lines.append) as endpoint:
        assert gone(pid)
        assert f"stopped server {pid}" in lines[0]
        assert triples(endpoint) == 100
    assert not list((tmp_path / "tmp").glob("kgprobe-store-*"))


def test_a_server_whose_owner_lives_is_left_alone(things):
    process, pid = owner(things)
    try:
        assert stop_orphans(lambda line: None) == 0
        assert psutil.pid_exists(pid)
    finally:
        process.terminate()
        process.wait(10)
    assert gone(pid)


def test_a_store_is_loaded_once_for_the_same_files(things, tmp_path):
    loads: list[str] = []
    for _ in range(2):
        with local_endpoint([things], tmp_path / "stores", log=loads.append) as endpoint:
            assert triples(endpoint) == 100
    assert sum("loaded" in line for line in loads) == 1
    copy = tmp_path / "copy.nt"
    copy.write_text(TRIPLES)
    assert files_hash([copy]) == files_hash([things])
    things.write_text(TRIPLES + "<http://a> <http://b> <http://c> .\n")
    with local_endpoint([things], tmp_path / "stores", log=loads.append) as endpoint:
        assert triples(endpoint) == 101
    assert sum("loaded" in line for line in loads) == 2


def test_two_at_a_time_also_from_threads(things, tmp_path):
    found: list[int] = []

    def count() -> None:
        with local_endpoint([things], tmp_path / "stores", log=lambda line: None) as endpoint:
            found.append(triples(endpoint))

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [100] * 3


def test_a_port_in_use_is_named(things):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(EndpointError, match=f"port {port} .* in use"),
            local_endpoint([things], port=port),
        ):
            pass
    with local_endpoint([things], port=port, log=lambda line: None) as endpoint:
        assert f":{port}/" in endpoint.url


def test_a_broken_file_is_shown_in_the_server_s_own_words(tmp_path):
    bad = tmp_path / "bad.nt"
    bad.write_text(TRIPLES + "<http://a> <http://b> no object .\n")
    stores = tmp_path / "stores"
    for _ in range(2):
        with (
            pytest.raises(EndpointError, match=r"could not load bad\.nt:\n(.|\n)*line 101"),
            local_endpoint([bad], stores),
        ):
            pass
    with (
        pytest.raises(EndpointError, match=r"no such RDF file: .*nothing\.nt"),
        local_endpoint([tmp_path / "nothing.nt"]),
    ):
        pass


def test_a_server_that_fails_shows_its_last_lines(things, tmp_path, monkeypatch):
    script = tmp_path / "oxigraph"
    script.write_text(
        '#!/bin/sh\n[ "$1" = load ] && exit 0\nfor i in $(seq 30); do echo line $i; done\nexit 3\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(module, "binary", lambda: str(script))
    with pytest.raises(EndpointError, match="ended at once") as caught, local_endpoint([things]):
        pass
    assert "line 30" in str(caught.value)
    assert "line 1\n" not in str(caught.value)
    monkeypatch.setattr(module, "READY_WITHIN", 0.3)
    script.write_text('#!/bin/sh\n[ "$1" = load ] && exit 0\necho waiting\nexec sleep 60\n')
    with (
        pytest.raises(EndpointError, match=r"did not answer within(.|\n)*waiting"),
        local_endpoint([things]),
    ):
        pass


def test_without_the_program_the_error_says_what_to_install(things, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EndpointError, match="pip install oxigraph"), local_endpoint([things]):
        pass


def test_turtle_with_relative_names(tmp_path):
    file = tmp_path / "relative.ttl"
    file.write_text("<a> <b> <c> .\n")
    with local_endpoint([file], log=lambda line: None) as endpoint:
        found = orjson.loads(fetch(endpoint.url, "SELECT ?s { ?s ?p ?o }"))
    assert found["results"]["bindings"][0]["s"]["value"] == "http://localhost/a"


@pytest.mark.timing
def test_a_query_beyond_the_server_s_time_is_a_cut_body(things):
    """Oxigraph's trap: status 200, and the text of the error behind half an answer."""
    with local_endpoint([things], timeout_s=1, log=lambda line: None) as endpoint:
        text = "SELECT ?a { ?a ?p ?x . ?b ?p ?y . ?c ?p ?z . ?d ?p ?w FILTER(?a = ?b || ?c != ?d) }"
        place = Place(endpoint.url, "slow", 1)
        try:
            answer: Answer = ask(endpoint, text, "kgprobe/test", place)
        except errors.ServerTrouble:
            return  # also seen: the connection ends
        assert answer.status == 200
        with pytest.raises(errors.TimedOut, match="cancelled"):
            check_answer(answer, place, ["a"])
