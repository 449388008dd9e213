"""Signals that stop a process: its `finally`s still run, and its last output is one line.

A job takes SIGTERM as SystemExit, a command of `kgprobe` as Ctrl-C, and one that waits for another
program hands the signal on. `kgprobe.guard` does the same for the process of a whole run.
"""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: what ends a run: Ctrl-C, the usual kill, a terminal that is closed
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: shells report a signal as this more than its number
ENDED = 128


@contextmanager
def terminated(error: Callable[[int], BaseException]) -> Iterator[None]:
    """SIGTERM raises `error(128 + its number)` in the body, once: another one does not disturb the
    cleanup after the first. A handler that the program has is kept."""

    def leave(number: int, _: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise error(ENDED + number)

    # elsewhere than in the main thread signals are not ours to handle
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
    """Forward the signals that arrive in the body to a process, which ends as it does; gives their
    numbers. A signal that this process ignores (nohup, a shell's background) stays ignored."""
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
