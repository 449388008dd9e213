"""An Oxigraph server for tests that need HTTP; the workflow queries files in process."""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kgprobe.sources.sparql.endpoint import Endpoint, Policy, open_store


def program() -> str:
    """Return the `oxigraph` program in this Python's folder, else on the PATH."""
    beside = Path(sys.executable).with_name("oxigraph")
    found = str(beside) if beside.is_file() else shutil.which("oxigraph")
    assert found, "`pip install oxigraph` gives the program that these tests ask over HTTP"
    return found


@contextlib.contextmanager
def local_endpoint(
    files: Sequence[str | Path], policy: Policy | None = None, timeout_s: int = 0
) -> Iterator[Endpoint]:
    """Serve the RDF `files` on a free port of 127.0.0.1 while the body runs."""
    with tempfile.TemporaryDirectory(prefix="kgprobe-store-") as name, socket.socket() as probe:
        open_store(files, Path(name))
        (store,) = (path for path in Path(name).iterdir() if path.is_dir())
        probe.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{probe.getsockname()[1]}"
        probe.close()
        command = [program(), "serve-read-only", "-l", str(store), "-b", place]
        command += ["--timeout-s", str(timeout_s)] if timeout_s else []
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                with contextlib.suppress(urllib.error.URLError):
                    urllib.request.urlopen(f"http://{place}/query?query=ASK%20%7B%7D").close()
                    break
                assert server.poll() is None, f"{command} ended"
                time.sleep(0.05)
            yield Endpoint("local", f"http://{place}/query", policy or Policy())
        finally:
            server.terminate()
            server.wait()


def sized(endpoint: Endpoint, page_size: int, batch: int = 1000) -> Endpoint:
    """Return an endpoint whose pages have other sizes, on which rows do not depend."""
    policy = replace(endpoint.policy, page_size=page_size, batch=batch)
    return replace(endpoint, policy=policy)
