"""Stop a run early: on SIGTERM or Ctrl-C, sent to Snakemake alone or to all its processes.

Snakemake itself waits for running jobs, which can take minutes. Here jobs are ended (SIGTERM, on
which `kgprobe.job` leaves its `with` blocks; SIGKILL after GRACE), then Snakemake ends as it does
when jobs fail, and one line reports what is kept and how to resume.

Jobs write temporary files to a folder of their run. It is removed with the run, and its name in the
environment (TMPDIR) identifies the run's processes, also those whose parents have died. The next
run ends the processes and removes the files of a run that was killed with SIGKILL.

Only processes on this machine are ended: cluster jobs are canceled by their executor.
"""

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from kgprobe.stops import ENDED, SIGNALS

#: seconds that a job has for its cleanup
GRACE = 2.0
#: seconds after which the run exits, whatever it is doing
LIMIT = 4.5
POLL_EVERY = 0.05
PREFIX = "kgprobe-run-"
SHELLS = ("bash", "sh", "dash", "zsh")
#: the process id in the name of a partial file or folder, or another number between dots
NUMBER = re.compile(r"\.(\d+)(?=\.)")
#: set once the run has received a signal to stop: later messages are useless to the user
stopping = threading.Event()


class Guard:
    """Handles the signals of Snakemake's own process; `workflow` is Snakemake's object.

    Everything except the signal handler itself runs in a thread, so that a busy main thread cannot
    block it. Must be created in the main thread.
    """

    def __init__(self, workflow: Any) -> None:
        self.workflow, self.number = workflow, 0
        self.said, self.alone = threading.Lock(), threading.Event()
        self.folder, self.held = "", -1
        self.results, self.answers = "", ""
        #: ids of processes that were still running when the run received the signal
        self.ended: set[int] = set()
        ear, mouth = os.pipe()
        os.set_blocking(mouth, False)
        signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        threading.Thread(target=self._wait, args=(ear,), daemon=True).start()
        # Jobs inherit this mask: Ctrl-C, which a terminal sends to all processes, reaches them only
        # as our SIGTERM, at a time when they have finished importing or have nothing to clean up.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        self.listen()
        atexit.register(self._last)

    def listen(self) -> None:
        """Install the signal handlers; called again before jobs begin, because the scheduler, when
        created, handles SIGTERM itself and may wait for a lock that the main thread holds."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle_signal)

    def own(self, results: str, answers: str) -> None:
        """Create the run's temporary folder, and remove what earlier runs left behind: all partial
        files in `results`, which no other run writes to. In `answers`, which runs share, partial
        files are assigned to runs by process id."""
        self.results, self.answers = results, answers
        sweep()
        _remove_half(results)
        self.folder, self.held = _make_folder()
        tempfile.tempdir = self.folder

    def _handle_signal(self, number: int, _: FrameType | None) -> None:
        """Handle a signal in the main thread: exit at once if no scheduler exists yet."""
        self.number = self.number or number
        if self.workflow.scheduler is None and not stopping.is_set():
            stopping.set()
            raise SystemExit(ENDED + number)

    def _wait(self, ear: int) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        while (number := os.read(ear, 1)[0]) not in SIGNALS:
            pass
        self.number = self.number or number
        late = threading.Timer(LIMIT, self._leave)
        late.daemon = True
        late.start()
        # jobs that are about to begin must not start
        sys.addaudithook(_refuse)
        if self.workflow.scheduler is not None:
            stopping.set()
            self.workflow.scheduler.exit_gracefully()
        for seen in _ending(self.folder):
            self.ended |= seen
        self.alone.set()
        # the scheduler leaves timers behind, and the interpreter would wait for them
        while True:
            for thread in threading.enumerate():
                if isinstance(thread, threading.Timer) and thread is not late:
                    thread.cancel()
            time.sleep(POLL_EVERY)

    def _leave(self) -> None:
        """Exit without waiting for the main thread, which does not end."""
        self.alone.set()
        self._last()
        os._exit(ENDED + self.number)

    def _last(self) -> None:
        """Remove temporary files; after a stop, also partial files, and report what is kept."""
        if self.number:
            self.alone.wait(LIMIT)
        if not self.said.acquire(blocking=False):
            return
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        if not self.number:
            return
        if self.folder:
            _remove_half(self.results)
            _remove_half(self.answers, self.ended)
        print(self._line(), file=sys.stderr, flush=True)

    def _line(self) -> str:
        name = "Ctrl-C" if self.number == signal.SIGINT else signal.Signals(self.number).name
        scheduler = self.workflow.scheduler
        if scheduler is None:
            return f"stopped ({name}) before the first job: run the same command to start again"
        done, total = scheduler.finished_jobs, len(self.workflow.dag)
        return (
            f"stopped ({name}): {done} of {total} jobs are done; they and the answers so far are "
            "kept, and the same command resumes"
        )


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        raise RuntimeError("the run is stopping: no new process is started")


def _jobs() -> Iterator[psutil.Process]:
    """Yield the child processes; for a shell that waits for its command, the command instead."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            below = child.children() if child.name() in SHELLS else []
            yield from below or [child]


def _find_processes(folder: str) -> set[psutil.Process]:
    """Return this user's processes whose TMPDIR is `folder`."""
    processes = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("TMPDIR") == folder:
                processes.add(process)
    return processes


def _ending(folder: str) -> Iterator[set[int]]:
    """End all processes of the run; yields the ids of those still running until there are none."""
    signaled: set[psutil.Process] = set()
    until = time.monotonic() + GRACE
    while True:
        left = set(psutil.Process().children(recursive=True))
        left |= _find_processes(folder) if folder else set()
        if not left:
            return
        yield {process.pid for process in left}
        # a job ends its own helpers: a server it uses must not vanish before the job is signaled
        jobs = set(_jobs())
        is_late = time.monotonic() >= until or not jobs
        for process in left if is_late else jobs - signaled:
            with contextlib.suppress(psutil.Error):
                process.kill() if is_late else process.terminate()
            signaled.add(process)
        time.sleep(POLL_EVERY)


def _make_folder() -> tuple[str, int]:
    """Return a temporary folder, and the locked descriptor that protects it from other runs."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        held = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(OSError):  # file systems without locks: nobody removes it there
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.isdir(folder):
            return folder, held
        os.close(held)


def sweep() -> int:
    """End the processes and remove the temporary folders of runs that were killed with SIGKILL;
    return the number of folders."""
    count = 0
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid != os.getuid():
                continue
            held = os.open(path, os.O_RDONLY)
            try:
                # fails if the run is still alive, because it holds the lock
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for process in _find_processes(str(path)):
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                shutil.rmtree(path, ignore_errors=True)
                count += 1
            finally:
                os.close(held)
    return count


def _remove_half(folder: str, processes: set[int] | None = None) -> None:
    """Remove partial files below a folder; with `processes` only those that one of them wrote."""
    for path in sorted(Path(folder).rglob(".*.part")):
        pids = set(map(int, NUMBER.findall(path.name)))
        if processes is not None and not pids & processes:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
