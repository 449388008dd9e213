"""A Spark cluster for compatibility tests: a standalone master and two workers on loopback.

pyspark contains the programs (`pip install 'kgprobe[spark]'`), Debian's openjdk-17-jre-headless
their Java runtime.
"""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

START = 60


@dataclass(frozen=True)
class Cluster:
    """The address of the master, and the processes of the workers."""

    master: str
    workers: list[subprocess.Popen[bytes]]


def require() -> None:
    """Skip the test without pyspark or Java."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("SPARK IS MISSING: pip install 'kgprobe[spark]'")
    if not shutil.which("java"):
        pytest.skip("JAVA IS MISSING: apt-get install -y openjdk-17-jre-headless")


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Cluster]:
    """Run a master and two workers of one core each, with logs and scratch files in `folder`."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *more: str) -> None:
        with open(folder / f"{name}.log", "wb") as log:
            command = [home / "bin/spark-class", f"org.apache.spark.deploy.{kind}", *more]
            processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, env=environment(home))
            )

    try:
        start("master", "master.Master", "--host", "127.0.0.1", "--port", str(port))
        _until(folder / "master.log", "I have been elected leader")
        for n in range(2):
            own = ("--work-dir", str(folder / f"worker{n}"), "--cores", "1", "--memory", "2g")
            start(f"worker{n}", "worker.Worker", "--host", "127.0.0.1", *own, master)
            _until(folder / f"worker{n}.log", "Successfully registered with master")
        yield Cluster(master, processes[1:])
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def environment(home: Path) -> dict[str, str]:
    """Return the environment of Spark's programs: this Python and its modules."""
    return os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


def _until(log: Path, words: str) -> None:
    for _ in range(START * 10):
        if words in log.read_text(encoding="utf-8", errors="replace"):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{log}: no {words!r} within {START} s:\n{log.read_text()[-2000:]}")
