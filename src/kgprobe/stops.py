"""Signals that stop a process: its `finally` blocks still run, and its last output is one line.

A job turns SIGTERM into SystemExit, a `kgprobe` command handles it like Ctrl-C, and a command that
waits for another program forwards the signal. `kgprobe.guard` does the same for a whole run.
"""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: signals that end a run: Ctrl-C, the usual kill, a terminal that is closed
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: shells report a process ended by signal n with the exit code 128 + n
ENDED = 128


@contextmanager
def terminated(error: Callable[[int], BaseException]) -> Iterator[None]:
    """Raise `error(128 + number)` in the body on SIGTERM, once: a second SIGTERM does not disturb
    the cleanup after the first. A handler that the program has installed is kept."""

    def leave(number: int, _: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise error(ENDED + number)

    # only the main thread can install signal handlers
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def passed_on(process: "subprocess.Popen[bytes]") -> Iterator[list[int]]:
    """Forward signals that arrive in the body to a process; yields the list of their numbers.
    A signal that this process ignores (nohup, background jobs of a shell) stays ignored."""
    numbers: list[int] = []

    def tell(number: int, _: FrameType | None) -> None:
        numbers.append(number)
        process.send_signal(number)

    heard = [s for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]
    before = {number: signal.signal(number, tell) for number in heard}
    try:
        yield numbers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
