"""The end of a run before its time: SIGTERM or Ctrl-C, to Snakemake alone or to all its processes.

Snakemake by itself waits for the jobs that run, minutes long. Here they are ended (SIGTERM, which
`kgprobe.job` takes as the end of its `with`s; SIGKILL after GRACE), then Snakemake ends as it does
when jobs fail, and one line tells what is kept and how to go on.

Jobs put what is temporary into a folder of their run. It goes with the run, and its name in the
environment (TMPDIR) marks the run's processes, those that lost their parents, too. What a run that
was killed outright has left, the next one ends and removes.

Only processes of this machine are ended: jobs of a cluster are its executor's to cancel.
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

#: seconds that a job has to put its things away
GRACE = 2.0
#: seconds after which the run ends wherever it is
LIMIT = 4.5
POLL_EVERY = 0.05
PREFIX = "kgprobe-run-"
SHELLS = ("bash", "sh", "dash", "zsh")
#: a part of the name of a file or folder that is being made; one is its process
NUMBER = re.compile(r"\.(\d+)(?=\.)")
#: set once the run has got a signal to stop: messages after that are of no use to anybody
stopping = threading.Event()


class Guard:
    """Takes the signals of Snakemake's own process from its making on; `workflow` is Snakemake's.

    All but the signals' own handler works in a thread, which a busy main thread cannot keep from
    its work. To be made in the main thread.
    """

    def __init__(self, workflow: Any) -> None:
        self.workflow, self.number = workflow, 0
        self.said, self.alone = threading.Lock(), threading.Event()
        self.folder, self.held = "", -1
        self.results, self.answers = "", ""
        #: processes that were still there when the run got the signal to stop
        self.ended: set[int] = set()
        ear, mouth = os.pipe()
        os.set_blocking(mouth, False)
        signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        threading.Thread(target=self._wait, args=(ear,), daemon=True).start()
        # Jobs inherit this: Ctrl-C, which a terminal sends to all, reaches them as our SIGTERM
        # alone, at a time when they have left their imports or have nothing to put away.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        self.listen()
        atexit.register(self._last)

    def listen(self) -> None:
        """Take the signals, once more before jobs begin: the scheduler takes SIGTERM when it
        is made, with a handler that can wait for a lock which the main thread itself holds."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle_signal)

    def own(self, results: str, answers: str) -> None:
        """Give the run its temporary folder, and remove what an earlier one left: partial files in
        `results`, which no other run writes to. In `answers`, which all share, partial files are
        known by their process."""
        self.results, self.answers = results, answers
        sweep()
        _remove_half(results)
        self.folder, self.held = _make_folder()
        tempfile.tempdir = self.folder

    def _handle_signal(self, number: int, _: FrameType | None) -> None:
        """In the main thread: without jobs the run ends here and now, else by its scheduler."""
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
        # a job that is about to begin does not
        sys.addaudithook(_refuse)
        if self.workflow.scheduler is not None:
            stopping.set()
            self.workflow.scheduler.exit_gracefully()
        for seen in _ending(self.folder):
            self.ended |= seen
        self.alone.set()
        # the scheduler leaves timers that would wake it, and the interpreter waits for them
        while True:
            for thread in threading.enumerate():
                if isinstance(thread, threading.Timer) and thread is not late:
                    thread.cancel()
            time.sleep(POLL_EVERY)

    def _leave(self) -> None:
        """Something in the main thread does not end: leave it there."""
        self.alone.set()
        self._last()
        os._exit(ENDED + self.number)

    def _last(self) -> None:
        """Remove temporary files; after a stop partial ones, too, and report what is kept."""
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
    """The processes that this one started; of a shell that waits for its command, the command."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            below = child.children() if child.name() in SHELLS else []
            yield from below or [child]


def _find_processes(folder: str) -> set[psutil.Process]:
    """Processes of this user whose temporary folder is this one."""
    processes = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("TMPDIR") == folder:
                processes.add(process)
    return processes


def _ending(folder: str) -> Iterator[set[int]]:
    """End all processes of the run; gives the ids of those that are left until there are none."""
    signaled: set[psutil.Process] = set()
    until = time.monotonic() + GRACE
    while True:
        left = set(psutil.Process().children(recursive=True))
        left |= _find_processes(folder) if folder else set()
        if not left:
            return
        yield {process.pid for process in left}
        # a job ends its own helpers: what answers it should not vanish before it has heard
        jobs = set(_jobs())
        is_late = time.monotonic() >= until or not jobs
        for process in left if is_late else jobs - signaled:
            with contextlib.suppress(psutil.Error):
                process.kill() if is_late else process.terminate()
            signaled.add(process)
        time.sleep(POLL_EVERY)


def _make_folder() -> tuple[str, int]:
    """A temporary folder, and the descriptor that holds it: nobody sweeps it while we live."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        held = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(OSError):  # of a file system without locks: nobody sweeps there
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.isdir(folder):
            return folder, held
        os.close(held)


def sweep() -> int:
    """End the processes and remove the temporary folders of runs that were killed outright; gives
    the number of folders."""
    count = 0
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid != os.getuid():
                continue
            held = os.open(path, os.O_RDONLY)
            try:
                # who lives holds it
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
