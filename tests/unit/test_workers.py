"""Worker processes of one job: their messages, one device each, and how they end."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kgprobe.files import atomic
from kgprobe.job import log
from kgprobe.probes.jobs import workers


def test_a_process_that_fails_is_quoted_and_ends_the_others(tmp_path):
    with pytest.raises(
        workers.WorkerError, match=r"process 2 of 2 ended with status 1(.|\n)*nothing to do"
    ):
        workers.run(fail_or_wait, (str(tmp_path),), 2, print)
    assert not is_alive(int((tmp_path / "0").read_text()))


@pytest.mark.timing
def test_processes_end_with_their_job_even_after_a_kill(tmp_path):
    called = f"workers.run(wait, ({str(tmp_path)!r},), 2, print)"
    code = f"from tests.unit.test_workers import wait, workers; {called}"
    job = subprocess.Popen([sys.executable, "-c", code])
    while len(started := [int(p.read_text()) for p in tmp_path.glob("[01]")]) < 2:
        assert job.poll() is None
        time.sleep(0.05)
    assert all(map(is_alive, started))
    job.kill()
    job.wait()
    until = time.monotonic() + 20
    while any(map(is_alive, started)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_alive, started))


def test_workers_see_one_device_each_and_their_lines_reach_the_log(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    counts: list[int] = []
    lines: list[str] = []
    monkeypatch.setattr(log, "log", lambda level, form, *words: lines.append(form % words))
    workers.run(note_device, (str(tmp_path),), 2, counts.append)
    assert sorted(p.read_text() for p in tmp_path.iterdir()) == ["0 of 2: 3", "1 of 2: 5"]
    assert sum(counts) == 2
    assert sorted(lines) == ["process 1: begins\nand ends", "process 2: begins\nand ends"]


def is_alive(process: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait(folder: str, part: tuple[int, int], progress) -> None:
    """Wait like a worker with much to do."""
    with atomic(Path(folder) / f"{part[0]}") as temporary:
        temporary.write_text(str(os.getpid()))
    time.sleep(600)


def fail_or_wait(folder: str, part: tuple[int, int], progress) -> None:
    """Wait as the first worker; fail as the second once the first has begun."""
    if part[0] == 0:
        wait(folder, part, progress)
    while not (Path(folder) / "0").exists():
        time.sleep(0.05)
    raise ValueError("nothing to do")


def note_device(folder: str, part: tuple[int, int], progress) -> None:
    """Write the device that this worker sees."""
    log.info("begins\n%s", "and ends")
    place = Path(folder) / f"{part[0]}"
    place.write_text(f"{part[0]} of {part[1]}: {os.environ['CUDA_VISIBLE_DEVICES']}")
    progress(1)
