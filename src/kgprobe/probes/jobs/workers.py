"""Parts of one job in separate processes: one accelerator each, or one CPU thread each.

    python -m kgprobe.probes.jobs.workers <task> <part> <parts>

is the command of such a process; the pickled task is a function of this package and its arguments.
Each line of its standard output is JSON: a number of finished units, or [level, message], a line of
the job's log. Its standard input is a pipe that closes when the job ends for any reason; the
process then ends as well.
"""

import importlib
import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgprobe.job import log

#: Number of lines of a failed process that its error quotes.
QUOTED = 5


class WorkerError(RuntimeError):
    """A process failed on its part; the message names part and cause."""


def run(
    function: Callable[..., object],
    arguments: tuple[Any, ...],
    count: int,
    progress: Callable[[int], object],
) -> None:
    """Call `function(*arguments, (k, count), progress)` in `count` processes at once.

    The k-th process sees only the k-th accelerator. The first failure ends the others and is raised
    as WorkerError; finished results are kept.
    """
    visible = _devices()
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task"
        place = (function.__module__, function.__qualname__)
        task.write_bytes(pickle.dumps((place, arguments)))
        started = []
        for number in range(count):
            device = {"CUDA_VISIBLE_DEVICES": visible[number % len(visible)]} if visible else {}
            command = [sys.executable, "-m", __spec__.name, str(task), str(number), str(count)]
            errors = open(Path(folder) / f"{number}.err", "w+b")  # noqa: SIM115  (read at the end)
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **device},
            )
            started.append((process, errors))
        try:
            _wait(started, progress)
        finally:
            for process, errors in started:
                with process, errors:
                    if process.poll() is None:
                        process.terminate()


def _wait(started: list[tuple[Any, Any]], progress: Callable[[int], object]) -> None:
    """Forward progress and log lines until all have ended; the first failure ends the others."""
    lock, failed = threading.Lock(), threading.Event()

    def follow(number: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                message = json.loads(line)
                with lock:
                    if isinstance(message, int):
                        progress(message)
                    else:
                        log.log(message[0], "process %d: %s", number, message[1])
        if process.wait() and not failed.is_set():
            failed.set()
            for other, _ in started:
                if other.poll() is None:
                    other.terminate()

    followers = [
        threading.Thread(target=follow, args=(number, process))
        for number, (process, _) in enumerate(started, 1)
    ]
    for follower in followers:
        follower.start()
    for follower in followers:
        follower.join()
    # processes ended because of another failure have a negative status
    broken = [i for i, (p, _) in enumerate(started) if p.returncode]
    if broken:
        part = max(broken, key=lambda i: started[i][0].returncode)
        process, errors = started[part]
        errors.seek(0)
        last_lines = errors.read().decode(errors="replace").strip().splitlines()[-QUOTED:]
        raise WorkerError(
            f"process {part + 1} of {len(started)} ended with status {process.returncode}; what is "
            "finished stays, run again to go on\n" + "\n".join(last_lines)
        )


def _devices() -> list[str]:
    """Return the numbers of the accelerators of this process, without initializing them."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [number for number in given.split(",") if number]
    folder = Path("/proc/driver/nvidia/gpus")
    return [str(n) for n in range(len(list(folder.iterdir())))] if folder.is_dir() else []


def main(task: str, part: str, parts: str) -> None:
    """Run one part of a task."""
    (module, name), arguments = pickle.loads(Path(task).read_bytes())
    out = sys.stdout
    # output of other code must not be parsed as progress
    sys.stdout = sys.stderr

    def tell(message: object) -> None:
        out.write(f"{json.dumps(message)}\n")
        out.flush()

    log.addHandler(Lines(tell))
    log.setLevel(logging.INFO)
    log.propagate = False

    def end_with_job() -> None:
        """Exit when the input closes, since a killed job cannot end its processes."""
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=end_with_job, daemon=True).start()
    function = getattr(importlib.import_module(module), name)
    function(*arguments, (int(part), int(parts)), lambda done: tell(int(done)))


class Lines(logging.Handler):
    """Sends each log record as [level, message]."""

    def __init__(self, tell: Callable[[object], None]) -> None:
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        self.tell([record.levelno, record.getMessage()])


if __name__ == "__main__":
    main(*sys.argv[1:4])
