"""A Virtuoso server for compatibility tests: DBpedia's engine with DBpedia's limits.

The Debian package virtuoso-opensource-7-bin contains `virtuoso-t` and `isql-vt`.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

GRAPH = "http://localhost/graph"

INI = """
[Database]
DatabaseFile = {folder}/virtuoso.db
ErrorLogFile = {folder}/virtuoso.log
LockFile = {folder}/virtuoso.lck
TransactionFile = {folder}/virtuoso.trx
xa_persistent_file = {folder}/virtuoso.pxa
ErrorLogLevel = 7
FileExtend = 200
MaxCheckpointRemap = 2000

[TempDatabase]
DatabaseFile = {folder}/virtuoso-temp.db
TransactionFile = {folder}/virtuoso-temp.trx
MaxCheckpointRemap = 2000

[Parameters]
ServerPort = 127.0.0.1:{sql}
DirsAllowed = {folder}, {data}
NumberOfBuffers = 20000
MaxDirtyBuffers = 15000
ServerThreads = 10
CheckpointInterval = 0
ThreadsPerQuery = 1
AsyncQueueMaxThreads = 2

[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerThreads = 5

[SPARQL]
ResultSetMaxRows = 10000
MaxQueryCostEstimationTime = 1500
MaxQueryExecutionTime = 120
DefaultQuery = select distinct ?c where {{ [] a ?c }} limit 10
DefaultGraph = {graph}
"""


def available() -> bool:
    """Return whether server and client are installed."""
    return bool(shutil.which("virtuoso-t") and shutil.which("isql-vt"))


def require() -> None:
    """Skip the test without Virtuoso."""
    if not available():
        pytest.skip("VIRTUOSO IS MISSING: apt-get install -y virtuoso-opensource-7-bin")


@contextlib.contextmanager
def serving(folder: Path, files: Sequence[Path]) -> Iterator[str]:
    """Yield the query URL of a Virtuoso that holds the RDF `files`, while the body runs."""
    data = folder / "data"
    data.mkdir(parents=True)
    for number, file in enumerate(files):
        (data / f"{number}-{file.name}").symlink_to(file.resolve())
    sql, http = _free_ports()
    (folder / "virtuoso.ini").write_text(INI.format(
        folder=folder, data=",".join([str(data), *{str(f.resolve().parent) for f in files}]),
        sql=sql, http=http, graph=GRAPH,
    ))  # fmt: skip
    server = subprocess.Popen(
        ["virtuoso-t", "+configfile", str(folder / "virtuoso.ini"), "+foreground"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, process_group=0,
    )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{http}/sparql"
        _wait(url, server, folder)
        _load(sql, data)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(10)


def _load(sql: int, data: Path) -> None:
    commands = (
        f"ld_dir('{data}', '*', '{GRAPH}'); rdf_loader_run(); "
        "select ll_file, ll_error from DB.DBA.load_list where ll_error is not null;"
    )
    done = subprocess.run(
        [
            "isql-vt", f"127.0.0.1:{sql}", "dba", "dba", "VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF",
            "ERRORS=STDOUT", f"EXEC={commands}",
        ], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stdout, done.stdout
    assert str(data) not in done.stdout, f"files not loaded: {done.stdout}"


def _wait(url: str, server: subprocess.Popen[bytes], folder: Path) -> None:
    ask = f"{url}?{urllib.parse.urlencode({'query': 'ASK {}'})}"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(ask, timeout=5):
            return
        time.sleep(0.1)
    log = folder / "virtuoso.log"
    raise RuntimeError(f"virtuoso did not start: {log.read_text()[-1000:] if log.exists() else ''}")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]
